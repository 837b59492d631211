/** The command-line client. */

export { loadConvertProgram } from './lazy.ts';
