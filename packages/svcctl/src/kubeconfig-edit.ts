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
  objectOf,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { CliError } from './io.ts';
import type { Session } from './session.ts';

/** The lists of named entries in a kubeconfig file. */
export type ListName = 'clusters' | 'users' | 'contexts';

/** The name of the member with an entry's body, by list. */
export const bodyNames: Readonly<Record<ListName, string>> = {
  clusters: 'cluster',
  users: 'user',
  contexts: 'context',
};

/** Reads and merges all kubeconfig files of the command line. */
export function readMerged(session: Session): Promise<Kubeconfig> {
  return loadKubeconfig({ files: session.kubeconfigFiles });
}

/** Returns the file for new entries: the first existing one, otherwise the last one of the list. */
export function defaultFile(session: Session): string {
  const files = session.kubeconfigFiles;
  return files.find((file) => statSync(file, { throwIfNoEntry: false })) ?? files.at(-1)!;
}

/**
 * Changes a kubeconfig file, or creates it with access for its owner only. A rename makes the
 * change atomic for readers, and a lock file excludes other writers. Keeps unknown members. Rejects
 * with CliError if the file is locked.
 */
export async function changeFile(
  file: string,
  change: (document: JsonObject) => void,
): Promise<void> {
  makeDirectories(path.dirname(file));
  // Write the target of a symbolic link, and keep the link.
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
    // A leftover partial file would hold secrets.
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

/** An entry of a kubeconfig. */
interface EntryName {
  readonly list: ListName;
  readonly name: string;
}

/**
 * Changes an entry in the file that defines it, or adds it to the default file. Resolves with the
 * written file and whether the entry existed.
 * @param change returns the new body, or undefined to delete the entry
 */
export async function changeEntry(
  session: Session,
  entry: EntryName,
  change: (body: JsonObject, file: string) => JsonObject | undefined,
): Promise<{ existed: boolean; file: string }> {
  const existing = (await readMerged(session))[entry.list].get(entry.name);
  const file = existing?.file ?? defaultFile(session);
  await changeFile(file, (document) => {
    const list = member(document, entry.list);
    const entries: JsonValue[] = Array.isArray(list) ? list : [];
    document[entry.list] = changeEntries(entries, entry, (body) => change(body, file));
  });
  return { existed: existing !== undefined, file };
}

function changeEntries(
  entries: readonly JsonValue[],
  { list, name }: EntryName,
  change: (body: JsonObject) => JsonObject | undefined,
): JsonValue[] {
  const at = entries.findIndex(
    (candidate) => isObject(candidate) && (candidate.name ?? '') === name,
  );
  const old = objectOf(entries[at]);
  const oldBody = member(old, bodyNames[list]);
  const body = change(isObject(oldBody) ? { ...oldBody } : {});
  if (body === undefined) return entries.filter((_, index) => index !== at);
  const entry = { ...old, name, [bodyNames[list]]: body };
  return at < 0 ? [...entries, entry] : entries.with(at, entry);
}

/** Sets the current context; an empty name removes it from the file that sets it. */
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

/**
 * Returns the form of a path in a kubeconfig file: relative if it is below that file's folder,
 * otherwise absolute.
 */
export function storedPath(kubeconfig: string, file: string): string {
  const relative = path.relative(path.dirname(path.resolve(kubeconfig)), file);
  return relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative) ? file : relative;
}

/**
 * Resolves with the arguments if there are exactly `count`. Otherwise, prints the help of the
 * command and rejects with CliError in kubectl's wording.
 */
export async function requireArgs(
  session: Session,
  args: readonly string[],
  count: number,
): Promise<readonly string[]> {
  if (args.length === count) return args;
  session.io.out(await session.help());
  const unexpected = session.words[1] === 'set-credentials' ? 'unexpected' : 'Unexpected';
  throw new CliError(`${unexpected} args: [${args.join(' ')}]`);
}
