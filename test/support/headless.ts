/** A Python program that leaves a process whose main thread has ended, and waits until that looks like a zombie. */
export const HEADLESS = `
import ctypes, os, threading, time
if os.fork() == 0:
    for fd in (0, 1, 2): os.close(fd)
    threading.Thread(target=lambda: time.sleep(600)).start()
    ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)
while True:
    with open(f'/proc/{os.getpid()}/task/{os.getpid()}/children') as children: child = children.read().strip()
    with open(f'/proc/{child}/status') as status:
        if 'State:\\tZ' in status.read(): break
print('looks dead', flush=True)
`;
