/**
 * Built-in functions that OPA 1.22.3 compiles into the module itself. Nothing else is admitted: what the host would have to provide
 * either reaches outside (`http.send`, `opa.runtime`, `time.now_ns`), or is JavaScript in the SDK and not bounded (its `regex.split`
 * backtracks for seconds). The SDK's own names (`json.is_valid`, `sprintf`, `yaml.*`) stay out even where the compiler has them.
 */
export const ADMITTED_BUILTINS: readonly string[] = [
  ...['plus', 'minus', 'mul', 'div', 'rem', 'abs', 'round', 'ceil', 'floor', 'numbers.range', 'to_number', 'format_int'],
  ...['bits.or', 'bits.and', 'bits.negate', 'bits.xor', 'bits.lsh', 'bits.rsh'],
  ...['eq', 'assign', 'equal', 'neq', 'gt', 'gte', 'lt', 'lte'],
  ...['count', 'sum', 'product', 'max', 'min', 'sort', 'internal.member_2', 'internal.member_3'],
  ...['array.concat', 'array.flatten', 'array.reverse', 'array.slice'],
  ...['and', 'or', 'intersection', 'union'],
  ...['is_number', 'is_string', 'is_boolean', 'is_array', 'is_set', 'is_object', 'is_null', 'type_name'],
  ...['object.filter', 'object.get', 'object.keys', 'object.remove', 'object.union', 'object.union_n', 'json.remove', 'json.filter'],
  ...['concat', 'indexof', 'substring', 'lower', 'upper', 'contains', 'startswith', 'endswith', 'split', 'replace', 'strings.replace_n'],
  ...['strings.reverse', 'trim', 'trim_left', 'trim_prefix', 'trim_right', 'trim_suffix', 'trim_space', 'internal.template_string'],
  ...['regex.is_valid', 'regex.match', 'regex.find_all_string_submatch_n', 'glob.match'],
  ...['base64.is_valid', 'base64.decode', 'base64.encode', 'base64url.encode', 'base64url.decode', 'json.marshal', 'json.unmarshal'],
  ...['net.cidr_contains', 'net.cidr_intersects', 'walk', 'graph.reachable'],
  // Replaced by literals when the policy is compiled.
  ...['rego.metadata.chain', 'rego.metadata.rule'],
];
