const letters = { info: 'I', warn: 'W', error: 'E', debug: 'I' } as const;

/**
 * A line of the log as text, in upstream's form: letter of the level, day, time, process, then the
 * message and the fields behind it. Times are of UTC.
 */
export function textLine(line: {
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
  const fields = Object.entries(line.fields).map(([name, value]) => ` ${name}=${written(value)}`);
  const message = JSON.stringify(line.message);
  return `${letters[line.level]}${day} ${clock} ${pid} wheelhouse] ${message}${fields.join('')}`;
}

function written(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.message);
  if (typeof value === 'bigint') return value.toString();
  try {
    return JSON.stringify(value) ?? 'null';
  } catch {
    return '"could not be written"';
  }
}
