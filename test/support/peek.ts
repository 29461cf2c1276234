/**
 * A shell program that tries every way to look into or take over process `$1`, and prints one word for each that worked. `$2` is a word
 * that stands in the target's environment. System call numbers are those of x86_64 and arm64.
 */
export const PEEK = `
pid=$1; word=$2
grep -qa "$word" /proc/$pid/environ 2>/dev/null && echo environ
dd if=/proc/$pid/mem bs=1 count=0 2>/dev/null && echo mem
for name in maps smaps auxv stack syscall; do [ -n "$(head -c 1 /proc/$pid/$name 2>/dev/null | tr '\\0' x)" ] && echo $name; done
for name in cwd root exe fd/0 fd/1 fd/3 ns/net ns/user; do readlink /proc/$pid/$name >/dev/null 2>&1 && echo $name; done
ls /proc/$pid/fd /proc/$pid/fdinfo >/dev/null 2>&1 && echo fds
perl -e '
  my $pid = $ARGV[0] + 0; my $arm = \`uname -m\` =~ /aarch64/;
  my ($ptrace, $readv) = $arm ? (117, 270) : (101, 310);
  print "ptrace\\n" if syscall($ptrace, 0x4206, $pid, 0, 0) == 0;
  my $pidfd = syscall(434, $pid, 0);
  print "pidfd_getfd\\n" if $pidfd >= 0 && syscall(438, $pidfd, 0, 0) >= 0;
  my $buffer = "x" x 8; my $local = pack("PQ", $buffer, 8); my $remote = pack("QQ", 0x1000, 8);
  my $n = syscall($readv, $pid, $local, 1, $remote, 1, 0);
  print "process_vm_readv\\n" if $n >= 0 || $!{EFAULT};
' "$pid"
true`;
