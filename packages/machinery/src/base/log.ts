/** Fields of one log line. Never a credential, a request body or a Secret's data. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The logging port. `verbosity` follows `-v`: `debug(n, …)` is written when `n <= verbosity`.
 * Rooms take a Logger; only `server/` makes one.
 */
export interface Logger {
  readonly verbosity: number;
  /** Changes the verbosity; absent where the log has one for ever. */
  readonly setVerbosity?: (verbosity: number) => void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  debug(level: number, message: string, fields?: LogFields): void;
}

/** Discards everything. */
export const silentLogger: Logger = {
  verbosity: 0,
  info: () => {},
  warn: () => {},
  error: () => {},
  debug: () => {},
};
