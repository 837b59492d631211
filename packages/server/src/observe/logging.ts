import type { Clock, LogFields, Logger } from '@wheelhouse/machinery';

const letters = { info: 'I', warn: 'W', error: 'E', debug: 'I' } as const;

/**
 * Formats a line in klog's text format: the letter of the level, the date and time in UTC, the
 * process ID, the message, and the fields.
 */
function textLine(line: {
  readonly ms: number;
  readonly level: keyof typeof letters;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly pid: number;
}): string {
  const time = new Date(line.ms).toISOString();
  const day = time.slice(5, 10).replace('-', '');
  const micros = String(Math.floor((line.ms % 1) * 1000)).padStart(3, '0');
  const clock = `${time.slice(11, 23)}${micros}`;
  const pid = String(line.pid).padStart(7);
  const fields = Object.entries(line.fields).map(([name, value]) => ` ${name}=${valueText(value)}`);
  const message = JSON.stringify(line.message);
  return `${letters[line.level]}${day} ${clock} ${pid} wheelhouse] ${message}${fields.join('')}`;
}

function valueText(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.message);
  if (typeof value === 'bigint') return value.toString();
  try {
    return JSON.stringify(value) ?? 'null';
  } catch {
    return '"could not be written"';
  }
}

/** Receives log lines; `process.stderr` is one. */
export interface LogSink {
  write(text: string): unknown;
}

/**
 * Creates a sink that buffers lines until they reach `bytesMax` bytes or the first one has waited
 * for `flushMs` milliseconds. `flush` writes the buffer at once.
 */
export function createBufferedSink(
  sink: LogSink,
  options: {
    readonly bytesMax: number;
    readonly flushMs: number;
    readonly clock: Pick<Clock, 'after'>;
  },
): LogSink & { flush(): void } {
  const { bytesMax, flushMs, clock } = options;
  let lines: string[] = [];
  let bytes = 0;
  let timer: { stop(): void } | undefined;
  const flush = () => {
    timer?.stop();
    timer = undefined;
    if (lines.length === 0) return;
    const text = lines.join('');
    lines = [];
    bytes = 0;
    sink.write(text);
  };
  return {
    flush,
    write(line) {
      lines.push(line);
      bytes += Buffer.byteLength(line);
      if (bytes >= bytesMax) flush();
      else timer ??= clock.after(flushMs, flush);
    },
  };
}

/** The values of `--logging-format`. */
export type LogFormat = 'json' | 'text';

type Level = 'info' | 'warn' | 'error' | 'debug';

/**
 * Creates a logger that writes one JSON object per line (`ts`, `level`, `msg`, and the fields) or
 * klog's text format. It replaces a logging library, which would add tens of milliseconds to
 * startup.
 */
export function createLogger(options: {
  verbosity: number;
  sink: LogSink;
  /** Receives all lines except errors; by default `sink`. */
  infoSink?: LogSink | undefined;
  clock: Clock;
  /** By default JSON. */
  format?: LogFormat;
}): Logger {
  const { clock } = options;
  const write = (level: Level, message: string, fields?: LogFields): void => {
    const sink = level === 'error' ? options.sink : (options.infoSink ?? options.sink);
    if (options.format === 'text') {
      const line = { ms: clock.now(), level, message, fields: fields ?? {}, pid: process.pid };
      sink.write(`${textLine(line)}\n`);
      return;
    }
    const ts = new Date(clock.now()).toISOString();
    sink.write(`${lineOf({ ...fields, ts, level, msg: message })}\n`);
  };
  // `verbosity` is a plain member rather than a getter, because each request reads it.
  const logger = {
    verbosity: options.verbosity,
    setVerbosity(verbosity: number) {
      logger.verbosity = verbosity;
    },
    info: (message: string, fields?: LogFields) => write('info', message, fields),
    warn: (message: string, fields?: LogFields) => write('warn', message, fields),
    error: (message: string, fields?: LogFields) => write('error', message, fields),
    debug(level: number, message: string, fields?: LogFields) {
      if (level <= logger.verbosity) write('debug', message, fields);
    },
  };
  return logger;
}

/** Formats a JSON line, in which `ts`, `level`, and `msg` precede the fields. */
function lineOf(fields: Record<string, unknown>): string {
  const { ts, level, msg, ...rest } = fields;
  try {
    return JSON.stringify({ ts, level, msg, ...rest }, readable);
  } catch {
    return JSON.stringify({ ts, level, msg, fields: 'could not be written' });
  }
}

function readable(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Error)) return value;
  const cause = value.cause === undefined ? {} : { cause: value.cause };
  return { name: value.name, message: value.message, stack: value.stack, ...cause };
}
