import { randomInt } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ApiResource, toYaml } from '@wheelhouse/client';
import { type JsonObject, setMember, systemErrorCode } from '@wheelhouse/machinery';
import { previewApply } from '../apply/client-side-apply.ts';
import { allowedKinds, findLeftovers, pruneFlags } from '../apply/prune.ts';
import { applyFlags, applyOnServer, isClientSide, managerOf } from '../apply/server-side-apply.ts';
import { getOrUndefined, objectPath, retryConflicts, warnIfDeleting } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { describeError, NoMatchError } from '../errors.ts';
import { CliError, throwFirst, usageError } from '../io.ts';
import { pathWithin } from '../local-path.ts';
import { loadManifests, type Manifest } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt } from '../objects.ts';
import { withoutManagedFields } from '../output/output.ts';
import { resourceOfObject } from '../selection.ts';
import type { Session } from '../session.ts';

/** The exit code of a failure; 1 means that there are differences. */
const failureCode = 2;

/**
 * Compares by server dry runs and runs `diff -u -N`, or the program in KUBECTL_EXTERNAL_DIFF. The
 * exit code is 1 for differences and 2 for failures.
 */
export const diffCommand: Command = {
  name: 'diff',
  summary: 'Diff the live objects against the result of an apply',
  usage: '-f FILENAME',
  flags: [
    ...applyFlags,
    ...pruneFlags,
    { name: 'prune', type: 'boolean', help: 'Include objects that apply --prune would delete' },
    { name: 'show-managed-fields', type: 'boolean', help: 'Compare managedFields as well' },
    { name: 'concurrency', type: 'integer', help: 'How many objects to compare at a time (1)' },
  ],
  flagErrorCode: failureCode,
  async run(session, args) {
    const compared = { live: createFolder('LIVE'), merged: createFolder('MERGED') };
    try {
      checkArguments(session, args);
      await writeVersions(session, compared);
      return await runDiff(session, compared);
    } catch (error) {
      if (session.io.signal.aborted) throw error;
      session.io.err(describeError(error).text);
      return failureCode;
    } finally {
      for (const folder of Object.values(compared)) {
        rmSync(folder, { recursive: true, force: true });
      }
    }
  },
};

/** Creates a folder for temporary files with the name that kubectl gives it, as in `LIVE-123`. */
function createFolder(prefix: string): string {
  for (;;) {
    const folder = path.join(tmpdir(), `${prefix}-${randomInt(2 ** 32)}`);
    try {
      mkdirSync(folder, { mode: 0o700 });
      return folder;
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
  }
}

/** The folders whose files are compared. */
interface Compared {
  readonly live: string;
  readonly merged: string;
}

function checkArguments(session: Session, args: readonly string[]): void {
  if (args.length > 0) throw usageError('diff', `Unexpected args: [${args.join(' ')}]`);
  throwFirst([
    session.flags.boolean('force-conflicts') &&
      isClientSide(session) &&
      '--force-conflicts only works with --server-side',
  ]);
}

/** Writes each object of the input as it is and as an apply would leave it. */
async function writeVersions(session: Session, compared: Compared): Promise<void> {
  const prunes = session.flags.boolean('prune');
  const kinds = prunes ? await allowedKinds(session) : undefined;
  const applied: JsonObject[] = [];
  // Workers share the iterator, so each manifest is compared once.
  const manifests = await loadManifests(session, 'file');
  const left = manifests.values();
  const work = async () => {
    for (const manifest of left) applied.push(await writeComparison(session, manifest, compared));
  };
  const workers = Math.min(
    manifests.length,
    Math.max(1, session.flags.integer('concurrency') ?? 1),
  );
  await Promise.all(Array.from({ length: workers }, work));
  if (!prunes) return;
  for await (const { resource, object } of findLeftovers(session, { applied, kinds })) {
    const { after } = preparedForDiff(session, { current: undefined, after: object });
    writeVersion(compared.live, fileName(resource, object), after);
  }
}

/** Writes both versions of one object. Resolves with the object that exists afterwards. */
async function writeComparison(
  session: Session,
  manifest: Manifest,
  compared: Compared,
): Promise<JsonObject> {
  const { resource, current, after } = await applyVersions(session, manifest);
  const file = fileName(resource, after);
  const shown = preparedForDiff(session, { current, after });
  // An object that does not exist yet is an empty file.
  writeVersion(compared.live, file, shown.current);
  writeVersion(compared.merged, file, shown.after);
  return current ?? after;
}

/** Throws CliError if the name leads out of the folder. */
function writeVersion(folder: string, name: string, object: JsonObject | undefined): void {
  const file = pathWithin(folder, name);
  writeFileSync(file, object === undefined ? '' : toYaml(object), { mode: 0o700 });
}

interface Versions {
  /** Undefined if the object does not exist. */
  readonly current: JsonObject | undefined;
  readonly after: JsonObject;
}

/** How often the object is read again because it changed; the last attempt takes what it finds. */
const attemptsMax = 4;

/**
 * Reads an object and applies the manifest to it in a dry run. Rejects with CliError for a kind
 * that the server does not have.
 */
async function applyVersions(
  session: Session,
  manifest: Manifest,
): Promise<Versions & { readonly resource: ApiResource }> {
  const { object, source } = manifest;
  const resource = await resourceOfObject(session, object).catch((error) => {
    throw error instanceof NoMatchError ? error.withSource(source) : error;
  });
  const livePath = objectPath(session, { resource, object });
  const manager = await managerOf(session);
  return retryConflicts(attemptsMax, async (attempt) => {
    const current = await getOrUndefined(session, livePath);
    const isLocked = attempt < attemptsMax;
    const after = isClientSide(session)
      ? await previewApply(session, manifest, { manager, live: current, isLocked })
      : await applyOnServer(session, { object, dryRun: true });
    if (current !== undefined) warnIfDeleting(session, current);
    return { resource, current, after };
  });
}

/** Characters of arguments in KUBECTL_EXTERNAL_DIFF; others are ignored, as in kubectl. */
const argumentForm = /^[a-zA-Z0-9=-]+$/;

/**
 * Runs the diff program. Resolves with 0 if it finds no difference, and with 1 if it finds some.
 * Rejects with CliError if it fails.
 */
async function runDiff(session: Session, { live, merged }: Compared): Promise<number> {
  const [program = '', ...words] = (session.io.env['KUBECTL_EXTERNAL_DIFF'] || 'diff').split(' ');
  const isDefault = !session.io.env['KUBECTL_EXTERNAL_DIFF'];
  const options = words.filter((word) => argumentForm.test(word));
  const args = isDefault ? ['-u', '-N', live, merged] : [live, merged, ...options];
  const code = await startDiff(session, program, args);
  if (code > 1) throw diffError(program, `exit status ${code}`);
  return code;
}

async function startDiff(
  session: Session,
  program: string,
  args: readonly string[],
): Promise<number> {
  if (program === '') throw diffError(program, 'exec: no command');
  try {
    return await session.io.run(program, args);
  } catch {
    throw diffError(program, 'executable file not found in $PATH');
  }
}

const diffError = (program: string, reason: string): CliError =>
  new CliError(`failed to run ${JSON.stringify(program)}: ${reason}`);

const fileName = ({ group, version, kind }: ApiResource, object: JsonObject): string =>
  [...(group === '' ? [] : [group]), version, kind, namespaceOf(object), nameOf(object)].join('.');

/** Hides the values of Secrets and, unless requested, managed fields. */
function preparedForDiff(session: Session, versions: Versions): Versions {
  const { current, after } = versions.after.kind === 'Secret' ? maskSecrets(versions) : versions;
  if (session.flags.boolean('show-managed-fields')) return { current, after };
  return { current: current && withoutManagedFields(current), after: withoutManagedFields(after) };
}

/** Replaces the values of a Secret by whether they change. */
function maskSecrets({ current, after }: Versions): Versions {
  const [before, next] = [objectAt(current ?? {}, 'data'), objectAt(after, 'data')];
  const masked = (data: JsonObject, changed: string): JsonObject => {
    const shown: JsonObject = {};
    for (const key of Object.keys(data)) {
      const differs =
        before[key] !== undefined && next[key] !== undefined && before[key] !== next[key];
      setMember(shown, key, differs ? `*** (${changed})` : '***');
    }
    return shown;
  };
  return {
    current: current && withData(current, masked(before, 'before')),
    after: withData(after, masked(next, 'after')),
  };
}

const withData = (secret: JsonObject, data: JsonObject): JsonObject =>
  secret['data'] === undefined ? secret : { ...secret, data };
