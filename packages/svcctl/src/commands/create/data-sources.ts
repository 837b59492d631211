import { isUtf8 } from 'node:buffer';
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { configMapKey, strictEnvironmentName } from '@wheelhouse/machinery';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import type { Session } from '../../session.ts';

/** Flags of commands that create objects with data. */
export const dataFlags: readonly FlagSpec[] = [
  { name: 'from-literal', type: 'list', help: 'KEY=VALUE' },
  { name: 'from-file', type: 'items', help: '[KEY=]FILE, or a folder' },
  { name: 'from-env-file', type: 'items', help: 'A file of KEY=VALUE lines' },
];

/** The object that receives the data. */
export interface DataTarget {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  /** The default key of a file; its name if undefined. */
  readonly fileKey?: string;
}

/** Reads the data of the flags. Throws CliError. */
export function readData(session: Session, target: DataTarget): Map<string, Buffer> {
  const data = new Map<string, Buffer>();
  const add = (key: string, value: Buffer) => {
    checkKey(key, target, data);
    data.set(key, value);
  };
  const literals = session.flags.list('from-literal');
  const files = session.flags.list('from-file');
  const environments = session.flags.list('from-env-file');
  if (environments.length > 0 && literals.length + files.length > 0) {
    throw new CliError('from-env-file cannot be combined with from-file or from-literal');
  }
  for (const source of files) {
    const { fileKey } = target;
    const whole = fileKey === undefined || source.includes('=') ? source : `${fileKey}=${source}`;
    for (const { key, file } of listFiles(session, whole)) {
      add(
        key,
        session.readFile(file, (reason) => reason),
      );
    }
  }
  for (const literal of literals) {
    const equals = literal.indexOf('=');
    if (equals <= 0) throw new CliError(`invalid literal source ${literal}, expected key=value`);
    add(literal.slice(0, equals), Buffer.from(literal.slice(equals + 1)));
  }
  for (const file of environments) {
    for (const [key, value] of readEnvironment(session, file, target)) add(key, value);
  }
  return data;
}

/** Throws a CliError for a key that is invalid or present. */
function checkKey(key: string, target: DataTarget, data: ReadonlyMap<string, Buffer>): void {
  const isMap = target.kind === 'ConfigMap';
  const faults = configMapKey(key);
  const quoted = JSON.stringify(key);
  if (faults.length > 0) {
    throw new CliError(
      isMap
        ? `${quoted} is not a valid key name for a ConfigMap: ${faults.join(',')}`
        : `${quoted} is not valid key name for a Secret ${faults.join(';')}`,
    );
  }
  const present = data.get(key);
  if (present === undefined) return;
  const field = isUtf8(present) ? 'Data' : 'BinaryData';
  const where = isMap ? ` in ${field} for ConfigMap ${JSON.stringify(target.name)}` : '';
  throw new CliError(
    `cannot add key ${isMap ? quoted : key}, another key by that name already exists${where}`,
  );
}

/** Finds the files of a source, `[KEY=]FILE` or a folder. Throws CliError. */
function listFiles(session: Session, source: string): { key: string; file: string }[] {
  const [first = '', second, ...more] = source.split('=');
  if (more.length > 0) throw new CliError("key names or file paths cannot contain '='");
  if (second !== undefined && first === '') {
    throw new CliError(`key name for file path ${second} missing`);
  }
  if (second === '') throw new CliError(`file path for key name ${first} missing`);
  const file = second ?? first;
  if (!isFolder(session, file)) {
    return [{ key: second === undefined ? path.basename(file) : first, file }];
  }
  if (second !== undefined) throw new CliError('cannot give a key name for a directory path');
  return readdirSync(session.path(file), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ key: entry.name, file: path.join(file, entry.name) }))
    .sort((left, right) => (left.key < right.key ? -1 : 1));
}

function isFolder(session: Session, file: string): boolean {
  const stat = statSync(session.path(file), { throwIfNoEntry: false });
  if (stat === undefined) throw new CliError(`error reading ${file}: no such file or directory`);
  return stat.isDirectory();
}

/** Reads the variables of a file. Throws CliError. */
function readEnvironment(
  session: Session,
  file: string,
  { kind }: DataTarget,
): readonly (readonly [key: string, value: Buffer])[] {
  if (isFolder(session, file)) {
    const noun = kind === 'ConfigMap' ? 'config' : 'secret';
    throw new CliError(`env ${noun} file cannot be a directory`);
  }
  const text = session.readFile(file, (reason) => reason);
  const lines = text.toString('latin1').split('\n');
  return lines.flatMap((line, index) => {
    const bytes = Buffer.from(line.replace(/\r$/, ''), 'latin1');
    if (!isUtf8(bytes)) {
      throw new CliError(
        `env file ${file} contains invalid utf8 bytes at line ${index + 1}: [${[...bytes].join(' ')}]`,
      );
    }
    const variable = variableOf(bytes.toString(), index === 0 ? 'first' : 'other');
    if (variable === undefined) return [];
    const { key, value = session.io.env[key] ?? '' } = variable;
    return [[key, Buffer.from(value)] as const];
  });
}

/** Parses a line; undefined for an empty line or a comment. Throws CliError. */
function variableOf(
  line: string,
  position: 'first' | 'other',
): { readonly key: string; readonly value: string | undefined } | undefined {
  const hasMark = position === 'first' && line.startsWith('\ufeff');
  const text = (hasMark ? line.slice(1) : line).replace(/^[^\S\ufeff]+/, '');
  if (text === '' || text.startsWith('#')) return undefined;
  const [key = ''] = text.split('=', 1);
  const faults = strictEnvironmentName(key);
  if (faults.length > 0) {
    throw new CliError(`${JSON.stringify(key)} is not a valid key name: ${faults.join(';')}`);
  }
  return { key, value: key.length === text.length ? undefined : text.slice(key.length + 1) };
}
