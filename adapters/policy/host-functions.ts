/**
 * Names of the functions that a compiled policy expects from its host; a policy that is fit for use names none.
 *
 * @throws Error when the module is no compiled policy
 */
export function hostFunctions(module: WebAssembly.Module): readonly string[] {
  const memory = new WebAssembly.Memory({ initial: 5, maximum: 1024 });
  const refuse = (): never => {
    throw new Error('The module calls its host while it is inspected.');
  };
  const names = ['opa_abort', 'opa_println', 'opa_builtin0', 'opa_builtin1', 'opa_builtin2', 'opa_builtin3', 'opa_builtin4'];
  const env = { memory, ...Object.fromEntries(names.map((name) => [name, refuse])) };
  const { exports } = new WebAssembly.Instance(module, { env });
  const { builtins, opa_json_dump } = exports as unknown as { builtins(): number; opa_json_dump(address: number): number };
  const bytes = new Uint8Array(memory.buffer).subarray(opa_json_dump(builtins()));
  return Object.keys(JSON.parse(new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)))) as object);
}
