/** The command-line client. */

export { CliError, type CliIo } from './io.ts';
export { loadConvertProgram } from './lazy.ts';
export { runSvcctl } from './main.ts';
