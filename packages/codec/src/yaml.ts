import { isUtf8 } from 'node:buffer';
import { YamlError, type YamlLimits } from './decode-limits.ts';
import type { DecodedJson } from './json.ts';

export { YamlError } from './decode-limits.ts';
export { encodeYaml, yamlListPieces, yamlPieces } from './yaml-write.ts';

const defaultLimits: YamlLimits = { valuesMax: 2_000_000 };

// biome-ignore lint/suspicious/noControlCharactersInRegex: YAML forbids them
const forbidden = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]/;
/** Line ends that the parser does not know. */
const otherLineEnds = /\r(?!\n)|\x85/g;

/**
 * Decodes the only document of a YAML text, or its first one if the limits say so, as
 * kube-apiserver does (CODEC-2): YAML 1.1 booleans and numbers, times as strings, merge keys, keys
 * converted to strings. The last of duplicate keys wins, and each duplicate is reported. An empty
 * text is null.
 * @throws YamlError or TooManyValues
 */
export async function decodeYaml(
  bytes: Buffer,
  limits: YamlLimits = defaultLimits,
): Promise<DecodedJson> {
  if (!isUtf8(bytes)) throw new YamlError('yaml: invalid leading UTF-8 octet');
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  if (forbidden.test(text)) throw new YamlError('yaml: control characters are not allowed');
  const { readYaml } = await import('./yaml-read.ts');
  return readYaml(text.replace(otherLineEnds, '\n'), limits);
}
