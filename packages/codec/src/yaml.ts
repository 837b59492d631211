import { isUtf8 } from 'node:buffer';
import type { DecodedJson } from './json.ts';
import { YamlError } from './yaml-error.ts';
import type { YamlLimits } from './yaml-limits.ts';

export { YamlError } from './yaml-error.ts';
export { encodeYaml, yamlListPieces, yamlPieces } from './yaml-write.ts';

const defaultLimits: YamlLimits = { valuesMax: 2_000_000 };

/**
 * Decodes the one document of a YAML text (CODEC-2) as upstream does: YAML 1.1 booleans and numbers,
 * times as strings, merge keys, keys made strings; of keys given twice the last wins and each is
 * told, in upstream's words. An empty text is null. The library that parses is loaded by the first
 * who needs it, as JSON is the rule. Rejects with YamlError, or TooManyValues.
 */
export async function decodeYaml(
  bytes: Buffer,
  limits: YamlLimits = defaultLimits,
): Promise<DecodedJson> {
  if (!isUtf8(bytes)) throw new YamlError('yaml: invalid leading UTF-8 octet');
  const { readYaml } = await import('./yaml-read.ts');
  return readYaml(bytes.toString('utf8'), limits);
}
