import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ApiError, type ApiResource, toYaml } from '@wheelhouse/client';
import { errorText, type JsonObject, setMember, systemErrorCode } from '@wheelhouse/machinery';
import { previewApply } from '../apply/client-side-apply.ts';
import { allowedKinds, findLeftovers, pruneFlags } from '../apply/prune.ts';
import { applyFlags, applyOnServer, isClientSide, managerOf } from '../apply/server-side-apply.ts';
import { getOrUndefined, objectPath, warnIfDeleting } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { describeError, NoMatchError, rootOf } from '../errors.ts';
import { CliError, throwFirst, usageError } from '../io.ts';
import { loadSelected, type Manifest } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt } from '../objects.ts';
import { resourceOfObject } from '../selection.ts';
import type { Session } from '../session.ts';

/** The exit code of a failure; 1 means that there are differences. */
const failureCode = 2;

export const diffCommand: Command = {
  name: 'diff',
  summary: 'Diff the live objects against the result of an apply',
  usage: '-f FILENAME',
  flags: [
    ...applyFlags,
    ...pruneFlags,
    { name: 'prune', type: 'boolean', help: 'Include objects that apply --prune would delete' },
    { name: 'show-managed-fields', type: 'boolean', help: 'Compare managedFields as well' },
  ],
  flagErrorCode: failureCode,
  async run(session, args) {
    const folder = mkdtempSync(path.join(tmpdir(), 'svcctl-diff-'));
    try {
      checkArguments(session, args);
      const compared = { live: path.join(folder, 'LIVE'), merged: path.join(folder, 'MERGED') };
      mkdirSync(compared.live, { mode: 0o700 });
      mkdirSync(compared.merged, { mode: 0o700 });
      await writeVersions(session, compared);
      return await runDiff(session, compared);
    } catch (error) {
      if (session.io.signal.aborted) throw error;
      session.io.err(describeError(error).text);
      return failureCode;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

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
async function writeVersions(session: Session, { live, merged }: Compared): Promise<void> {
  const prunes = session.flags.boolean('prune');
  const kinds = prunes ? await allowedKinds(session) : undefined;
  const applied: JsonObject[] = [];
  for (const manifest of await loadSelected(session)) {
    const { resource, current, after } = await applyVersions(session, manifest);
    const file = fileName(resource, after);
    applied.push(current ?? after);
    const shown = preparedForDiff(session, { current, after });
    // An object that does not exist yet is an empty file.
    writeFileSync(path.join(live, file), shown.current === undefined ? '' : toYaml(shown.current));
    writeFileSync(path.join(merged, file), toYaml(shown.after));
  }
  if (!prunes) return;
  for await (const { resource, object } of findLeftovers(session, { applied, kinds })) {
    const { after } = preparedForDiff(session, { current: undefined, after: object });
    writeFileSync(path.join(live, fileName(resource, object)), toYaml(after));
  }
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
  if (nameOf(object) === '') throw new CliError('resource name may not be empty');
  const livePath = objectPath(session, { resource, object });
  const manager = await managerOf(session);
  for (let attempt = 1; ; attempt += 1) {
    const current = await getOrUndefined(session, livePath);
    const isLocked = attempt < attemptsMax;
    try {
      const after = isClientSide(session)
        ? await previewApply(session, manifest, { manager, live: current, isLocked })
        : await applyOnServer(session, { object, dryRun: true });
      if (current !== undefined) warnIfDeleting(session, current);
      return { resource, current, after };
    } catch (error) {
      const root = rootOf(error);
      const isConflict = root instanceof ApiError && root.reason === 'Conflict';
      if (!isConflict || attempt === attemptsMax) throw error;
    }
  }
}

/** Characters of arguments in KUBECTL_EXTERNAL_DIFF; others are ignored, as in kubectl. */
const argumentForm = /^[a-zA-Z0-9=-]+$/;

/** Runs the diff program. Resolves with its exit code. */
async function runDiff(session: Session, { live, merged }: Compared): Promise<number> {
  const external = session.io.env['KUBECTL_EXTERNAL_DIFF'] || 'diff -u -N';
  const [program = '', ...words] = external.split(' ');
  const options = words.filter((word) => argumentForm.test(word));
  try {
    return await session.io.run(program, [...options, live, merged]);
  } catch (error) {
    const why =
      systemErrorCode(error) === 'ENOENT' ? 'executable file not found in $PATH' : errorText(error);
    throw new CliError(`failed to run ${JSON.stringify(program)}: ${why}`);
  }
}

const fileName = ({ group, version, kind }: ApiResource, object: JsonObject): string =>
  [...(group === '' ? [] : [group]), version, kind, namespaceOf(object), nameOf(object)].join('.');

/** Hides the values of Secrets and, unless requested, managed fields. */
function preparedForDiff(session: Session, versions: Versions): Versions {
  const { current, after } = versions.after.kind === 'Secret' ? maskSecrets(versions) : versions;
  if (session.flags.boolean('show-managed-fields')) return { current, after };
  return { current: current && withoutManagedFields(current), after: withoutManagedFields(after) };
}

function withoutManagedFields(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = objectAt(object, 'metadata');
  return { ...object, metadata };
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
