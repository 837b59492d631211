import { humanDuration } from '@wheelhouse/machinery';
import type { CliIo } from './io.ts';
import type { Session } from './session.ts';

/** Minimum duration of a wait for which progress is shown. */
const progressDelayMs = 2_000;

/** Runs a wait and, on a terminal, shows `text` and the elapsed time on standard error. */
export async function withProgress<T>(
  session: Session,
  text: string,
  wait: () => Promise<T>,
): Promise<T> {
  const { clock, io } = session;
  if (io.status === undefined) return wait();
  const started = clock.monotonic();
  const ticker = clock.every(1_000, () => {
    const passed = clock.monotonic() - started;
    if (passed >= progressDelayMs) io.status?.(`${text} … ${humanDuration(passed)}`);
  });
  try {
    return await wait();
  } finally {
    ticker.stop();
    io.status('');
  }
}

/** Minimum number of steps for which progress is shown. */
const stepsMin = 10;

/**
 * Shows the number of the current step on a terminal, if there are many; the last call clears it.
 */
export function showStep(
  { io }: Session,
  { text, done, total }: { readonly text: string; readonly done: number; readonly total: number },
): void {
  if (total < stepsMin) return;
  io.status?.(done >= total ? '' : `${text} ${done + 1} of ${total}`);
}

const codes = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

/** A color, or bold, that terminals display. */
export type Color = keyof typeof codes;

/** Colors a text, or returns it unchanged. */
export type Paint = (text: string, color: Color) => string;

const colored: Paint = (text, color) => `\u001b[${codes[color]}m${text}\u001b[0m`;

/** Whether terminals may show colors: NO_COLOR and TERM=dumb disable them. */
function allowsColors({ env }: CliIo): boolean {
  return (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

/** Returns the painter for standard output, which colors only on a terminal. */
export const paintOf = (io: CliIo): Paint =>
  io.outIsTerminal === true && allowsColors(io) ? colored : (text) => text;

/** The color of a message on standard error, by its prefix. */
function messageColor(line: string): Color | undefined {
  if (line.startsWith('Warning: ')) return 'yellow';
  return /^(error: |Error from server|Unable to connect)/.test(line) ? 'red' : undefined;
}

const clearLine = '\r\u001b[K';

/**
 * Wraps an environment whose standard error is a terminal: colors warnings and errors, and adds a
 * status line that the next output replaces. Returns other environments unchanged.
 */
export function terminalIo(io: CliIo): CliIo {
  if (io.errIsTerminal !== true) return io;
  const hasColors = allowsColors(io);
  let isStatusShown = false;
  const clear = () => {
    if (isStatusShown) io.err(clearLine);
    isStatusShown = false;
  };
  const painted = (text: string) =>
    text
      .split('\n')
      .map((line) => {
        const color = messageColor(line);
        return color === undefined ? line : colored(line, color);
      })
      .join('\n');
  return {
    ...io,
    out(text) {
      clear();
      io.out(text);
    },
    err(text) {
      clear();
      io.err(hasColors ? painted(text) : text);
    },
    status(text) {
      clear();
      if (text === '') return;
      io.err(text);
      isStatusShown = true;
    },
  };
}

/**
 * Wraps an environment so that what a server sends cannot command the terminal: messages show their
 * control characters, and so does output to a terminal, apart from this program's colors.
 * @param options.isOutputRaw whether output passes unchanged, as that of templates does
 */
export function showingControls(io: CliIo, options: { readonly isOutputRaw: boolean }): CliIo {
  const { status } = io;
  const filtersOutput = io.outIsTerminal === true && !options.isOutputRaw;
  return {
    ...io,
    out: filtersOutput ? (text) => io.out(withoutForeignControls(text)) : (text) => io.out(text),
    err: (text) => io.err(withoutControls(text)),
    ...(status === undefined ? {} : { status: (text) => status(withoutControls(text)) }),
  };
}

/** The colors that `colored` emits. */
const ownColors = new RegExp(`(\u001b\\[(?:0|${Object.values(codes).join('|')})m)`);

const withoutForeignControls = (text: string) =>
  text
    .split(ownColors)
    .map((part, index) => (index % 2 === 1 ? part : withoutControls(part)))
    .join('');

/** Control characters except tabs and ends of lines. */
const controls = /(?![\t\n])\p{Cc}/gu;

/**
 * Replaces the control characters of a text by visible ones, so that an object's author cannot send
 * commands to the terminals of others: `^[` for Escape, and escape sequences of strings for the
 * others.
 */
export function withoutControls(text: string): string {
  return text.replace(controls, (character) => {
    if (character === '\u001b') return '^[';
    if (character === '\r') return '\\r';
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}
