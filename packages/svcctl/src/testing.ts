/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { ConvertError, convertObject, guessForm, runConvert } from './convert/convert.ts';
export { inVersion, knownKind } from './convert/convert-version.ts';
export type { CliIo } from './io.ts';
export { runSvcctl } from './main.ts';
