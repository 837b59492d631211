/** Additional exports for tests, benchmarks, and the siege, without a promise of stability. */

export type { Command } from './command.ts';
export { loadCommands } from './commands.ts';
export { ConvertError, convertObject, guessForm, runConvert } from './convert/convert.ts';
export {
  convertToVersion as inVersion,
  findBuiltinKind as knownKind,
} from './convert/convert-version.ts';
export type { FlagSpec } from './flags.ts';
export type { CliIo } from './io.ts';
export { runSvcctl } from './main.ts';
export { globalFlags } from './session.ts';
