import { parse, stringify } from 'yaml';
import type { JsonValue } from '../base/json.ts';
import type { DecodedJson } from './json.ts';
export class YamlError extends Error {}
export async function decodeYaml(bytes: Buffer): Promise<DecodedJson> {
  return { value: parse(bytes.toString('utf8')) as JsonValue, duplicates: [] };
}
export function encodeYaml(value: JsonValue): string {
  return stringify(value);
}
