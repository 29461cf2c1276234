// `outwork`: a kernel to embed. `test/architecture` pins this list.
export { createKernel, type KernelOptions } from './compose.ts';
export { type ConfigOverrides, type LoadOptions, loadConfig } from './config.ts';
