import {
  closeSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type Kubeconfig, loadKubeconfig, readKubeconfigFile, toYaml } from '@wheelhouse/client';
import {
  errorText,
  isObject,
  type JsonObject,
  type JsonValue,
  makeDirectories,
  member,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { CliError } from './io.ts';
import type { Session } from './session.ts';

export type ListName = 'clusters' | 'users' | 'contexts';

/** The member that has an entry's body, by list. */
export const bodyNames: Readonly<Record<ListName, string>> = {
  clusters: 'cluster',
  users: 'user',
  contexts: 'context',
};

/** All files of the run, merged. */
export function readMerged(session: Session): Promise<Kubeconfig> {
  return loadKubeconfig({ files: session.kubeconfigFiles });
}

/** Where new entries go: the first file of the list that there is, else the last. */
export function defaultFile(session: Session): string {
  const files = session.kubeconfigFiles;
  return files.find((file) => statSync(file, { throwIfNoEntry: false })) ?? files.at(-1)!;
}

/**
 * Changes one document and writes it, to be read by its owner alone, through a neighbour and a
 * rename, so that no reader sees half of it. A lock file keeps other writers out meanwhile. Members
 * nobody here knows are kept. Throws CliError when the file is locked.
 */
export async function changeFile(
  file: string,
  change: (document: JsonObject) => void,
): Promise<void> {
  makeDirectories(path.dirname(file));
  // A link stays one: what it points to is written.
  const target = statSync(file, { throwIfNoEntry: false }) ? realpathSync(file) : file;
  const lock = `${target}.lock`;
  const partial = `${target}.${process.pid}.partial`;
  takeLock(lock);
  try {
    const document = (await readKubeconfigFile(target)) ?? emptyDocument();
    change(document);
    writeFileSync(partial, toYaml(document), { mode: 0o600 });
    renameSync(partial, target);
  } finally {
    // What was not renamed holds secrets that nobody would look for.
    rmSync(partial, { force: true });
    rmSync(lock, { force: true });
  }
}

const emptyDocument = (): JsonObject => ({
  apiVersion: 'v1',
  clusters: [],
  contexts: [],
  'current-context': '',
  kind: 'Config',
  preferences: {},
  users: [],
});

function takeLock(lock: string): void {
  try {
    closeSync(openSync(lock, 'wx', 0o600));
  } catch (error) {
    const code = systemErrorCode(error);
    const message = errorText(error);
    throw new CliError(code === 'EEXIST' ? `open ${lock}: file exists` : message);
  }
}

export interface EntryName {
  readonly list: ListName;
  readonly name: string;
}

/**
 * Changes an entry in the file that defines it, or makes it in the default one. `change` gives the
 * new body of the old one, undefined to delete the entry; `file` is where it is written.
 */
export async function changeEntry(
  session: Session,
  entry: EntryName,
  change: (body: JsonObject, file: string) => JsonObject | undefined,
): Promise<{ existed: boolean; file: string }> {
  const found = (await readMerged(session))[entry.list].get(entry.name);
  const file = found?.file ?? defaultFile(session);
  await changeFile(file, (document) => {
    const list = member(document, entry.list);
    const entries: JsonValue[] = Array.isArray(list) ? list : [];
    document[entry.list] = changed(entries, entry, (body) => change(body, file));
  });
  return { existed: found !== undefined, file };
}

function changed(
  entries: readonly JsonValue[],
  { list, name }: EntryName,
  change: (body: JsonObject) => JsonObject | undefined,
): JsonValue[] {
  const at = entries.findIndex((one) => isObject(one) && (one.name ?? '') === name);
  const found = entries[at];
  const old = isObject(found) ? found : {};
  const oldBody = member(old, bodyNames[list]);
  const body = change(isObject(oldBody) ? { ...oldBody } : {});
  if (body === undefined) return entries.filter((_, index) => index !== at);
  const made = { ...old, name, [bodyNames[list]]: body };
  return at < 0 ? [...entries, made] : entries.with(at, made);
}

/** Sets the current context where it counts; empty: takes it away where it is set. */
export async function changeCurrentContext(session: Session, name: string): Promise<void> {
  if ((await readMerged(session)).currentContext === name) return;
  const file = name === '' ? await fileWithContext(session) : defaultFile(session);
  await changeFile(file, (document) => {
    document['current-context'] = name;
  });
}

async function fileWithContext(session: Session): Promise<string> {
  for (const file of session.kubeconfigFiles) {
    const document = await readKubeconfigFile(file);
    if (document !== undefined && (document['current-context'] ?? '') !== '') return file;
  }
  return defaultFile(session);
}

/** A path as a kubeconfig keeps it: relative to the file when below its folder, else absolute. */
export function pathFor(kubeconfig: string, file: string): string {
  const relative = path.relative(path.dirname(path.resolve(kubeconfig)), file);
  return relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative) ? file : relative;
}

/** The arguments of a command that takes this many; throws CliError as kubectl's users know it. */
export function exactly(count: number, args: readonly string[]): readonly string[] {
  if (args.length !== count) throw new CliError(`Unexpected args: [${args.join(' ')}]`);
  return args;
}
