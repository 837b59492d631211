import type { FlagSpec } from './flags.ts';
import type { Session } from './session.ts';

/** One command, or a group of them. */
export interface Command {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows the name: `(TYPE[.VERSION][.GROUP] [NAME | -l label])`. */
  readonly usage?: string;
  readonly flags?: readonly FlagSpec[];
  readonly subcommands?: readonly Command[];
  /** Gives the exit code; throws CliError, ApiError and the client's errors. */
  run?(session: Session, args: readonly string[]): Promise<number>;
}
