package outwork.lib.cidrs_test

import data.outwork.lib.cidrs

test_success_address[text] if {
	some text in ["1.2.3.4", "0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8::1", "1:2:3:4:5:6:7:8", "fe80::", "1:2:3:4:5:6:7::"]
	cidrs.address(text)
}

# BL-077: other ways of writing an address are none.
test_fail_address[text] if {
	some text in [
		"", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", "0x7f.1", "2130706433", "017700000001", "[::1]", "::1%eth0",
		"::ffff:169.254.169.254", "FE80::1", "1:2:3:4:5:6:7", "1::2::3", ":::", "1:2:3:4:5:6:7:8:9", "12345::", "1.2.3.4/32", "a.b", "1.2.3.4.", "1.2..4", "1.2.3.0004", "1:2:3:4:5:6:7:8::", "::1:", ":1::", "g::1", ":", "1:2:3:4:5:6:7:",
	]
	not cidrs.address(text)
}

test_success_quad if cidrs.quad("10.0.200.255")

test_fail_quad[text] if {
	some text in ["::1", "10.0.0", "10.0.0.256", "10.0.0.1000", "00.0.0.1", "10.0.0.a", ""]
	not cidrs.quad(text)
}

test_success_within[note] if {
	some note, pair in {
		"a network": ["10.0.0.0/8", "10.1.2.3"],
		"its first": ["192.168.4.0/22", "192.168.4.0"],
		"its last": ["192.168.4.0/22", "192.168.7.255"],
		"one address": ["10.0.0.1/32", "10.0.0.1"],
		"six": ["2001:db8::/32", "2001:db8:1::1"],
	}
	cidrs.within(pair[0], pair[1])
}

test_fail_within[note] if {
	some note, pair in {
		"outside": ["10.0.0.0/8", "11.0.0.1"],
		"one below": ["192.168.4.0/22", "192.168.3.255"],
		"one above": ["192.168.4.0/22", "192.168.8.0"],
		"the other family": ["::/0", "10.0.0.1"],
		"the other family too": ["0.0.0.0/0", "::1"],
		"no address": ["10.0.0.0/8", "10.1"],
	}
	not cidrs.within(pair[0], pair[1])
}

test_success_public[text] if {
	some text in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:2800:220:1::1", "2a00::1"]
	cidrs.public(text)
}

test_fail_public[text] if {
	some text in [
		"0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.0.1", "198.18.0.1",
		"224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fd00:ec2::254", "ff02::1", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
		"2001::1", "2001:db8::1", "::ffff:a9fe:a9fe", "::ffff:169.254.169.254", "x",
	]
	not cidrs.public(text)
}
