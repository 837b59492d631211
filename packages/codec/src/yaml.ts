import { isUtf8 } from 'node:buffer';
import { nextTurn } from '@wheelhouse/machinery';
import { YamlError, type YamlLimits } from './decode-limits.ts';
import type { DecodedJson } from './json.ts';

export { YamlError } from './decode-limits.ts';
export { encodeYaml, yamlListPieces, yamlPieces } from './yaml-write.ts';

const defaultLimits: YamlLimits = { valuesMax: 2_000_000 };

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
  const { readYamlSteps } = await import('./yaml-read.ts');
  const { repeated, ...read } = await inTurns(
    readYamlSteps(bytes.toString('utf8'), limits),
    limits,
  );
  return { ...read, duplicates: [], ...(repeated.length === 0 ? {} : { repeated }) };
}

/** Runs one step in each turn of the event loop until the result is no longer needed. */
async function inTurns<Result>(
  work: Iterator<void, Result>,
  { isWanted }: YamlLimits,
): Promise<Result> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    await nextTurn();
    if (isWanted?.() === false) throw new YamlError('yaml: no longer needed');
  }
}
