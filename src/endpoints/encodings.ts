import type { EncodingDescriptor } from '../codec/negotiation.ts';

/** The encodings answers come in, the default first (CODEC-1). */
export const servedEncodings: readonly EncodingDescriptor[] = [
  { mediaType: 'application/json', streams: true, tables: true },
  { mediaType: 'application/yaml', streams: false, tables: true },
];

/** Media types for messages: of answers, or with `;stream=watch` of those a watch comes in. */
export function mediaTypes(encodings: readonly EncodingDescriptor[], isWatch = false): string[] {
  if (!isWatch) return encodings.map((one) => one.mediaType);
  return encodings.filter((one) => one.streams).map((one) => `${one.mediaType};stream=watch`);
}
