import type { FlagSpec } from './flags.ts';
import type { Session } from './session.ts';

/**
 * What a command's arguments may be: `objects` a type and names of its objects, or both joined with
 * a slash; `pods` and `nodes` names of those; `types` one type; `verb-and-type` a verb of the API
 * before it; the others one entry of the kubeconfig, or a shell.
 */
export type Completes =
  | 'objects'
  | 'pods'
  | 'nodes'
  | 'types'
  | 'verb-and-type'
  | 'contexts'
  | 'clusters'
  | 'users'
  | 'shells';

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
  /** What its arguments are, for shells that complete them; absent: nothing is known of them. */
  readonly completes?: Completes;
  /** Gives the exit code; throws CliError, ApiError and the client's errors. */
  run?(session: Session, args: readonly string[]): Promise<number>;
}
