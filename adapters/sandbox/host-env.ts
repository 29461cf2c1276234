/** Environment of every program the engine starts on the host: explicit, so that nothing of the kernel's own reaches one. */
export const HOST_ENV: Readonly<Record<string, string>> = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
