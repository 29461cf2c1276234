/** A JSON Schema (2020-12) as plain data. */
export type JsonSchema = { readonly [key: string]: unknown };

/** Compiles a schema to a check that gives the first fault as `path: message`, or undefined. */
export type CompileSchema = (schema: JsonSchema) => (value: unknown) => string | undefined;
