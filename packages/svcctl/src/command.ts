import type { FlagSpec } from './flags.ts';
import type { Session } from './session.ts';

/**
 * What a shell completes for a command's arguments. `objects`: a type and names of its objects, or
 * `TYPE/NAME`; `pods`, `nodes`: their names; `types`: one type; `verb-and-type`: an API verb and a
 * type; `contexts`, `clusters`, `users`: the name of a kubeconfig entry; `shells`: a shell.
 */
type CompletionKind =
  | 'objects'
  | 'pods'
  | 'nodes'
  | 'types'
  | 'verb-and-type'
  | 'contexts'
  | 'clusters'
  | 'users'
  | 'shells';

/** A flag whose value may be checked before the command runs. */
export interface CommandFlag extends FlagSpec {
  /** Called if the flag is set. Throws CliError. */
  readonly check?: (session: Session) => void;
}

/** A command, or a group of commands. */
export interface Command {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Words of other programs for which this command is suggested. */
  readonly suggestedFor?: readonly string[];
  /** One line for the list of commands. */
  readonly summary: string;
  /** The arguments, as help shows them: `(TYPE[.VERSION][.GROUP] [NAME | -l label])`. */
  readonly usage?: string;
  readonly flags?: readonly CommandFlag[];
  readonly subcommands?: readonly Command[];
  /**
   * What a group without `run` does if no subcommand is named: it prints its help and fails, by
   * default on standard error, or it succeeds.
   */
  readonly alone?: 'fails' | 'fails on stdout' | 'succeeds';
  /** The exit code for an invalid flag of a command whose code 1 is no failure; 1 if absent. */
  readonly flagErrorCode?: number;
  /** How the arguments are completed; absent if they are not. */
  readonly completes?: CompletionKind;
  /** Resolves with the exit code. Rejects with CliError, ApiError, and the client's errors. */
  run?(session: Session, args: readonly string[]): Promise<number>;
}
