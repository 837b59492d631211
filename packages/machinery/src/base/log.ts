/** Fields of one log line. Must not contain credentials, request bodies, or the data of Secrets. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A log. `debug(n, …)` writes a line if `n <= verbosity`, which is the value of `-v`. */
export interface Logger {
  readonly verbosity: number;
  /** Changes the verbosity; absent if it is fixed. */
  readonly setVerbosity?: (verbosity: number) => void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  debug(level: number, message: string, fields?: LogFields): void;
}

/** A logger that discards all lines. */
export const silentLogger: Logger = {
  verbosity: 0,
  info: () => {},
  warn: () => {},
  error: () => {},
  debug: () => {},
};
