/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { ConvertError, convertObject, guessForm } from './convert/convert.ts';
export { runConvert } from './convert/convert-program.ts';
export { inVersion, knownKind } from './convert/convert-version.ts';
export type { CliIo } from './io.ts';
export { runSvcctl } from './main.ts';
