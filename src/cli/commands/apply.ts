import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isObject, type JsonObject, setMember } from '../../base/json.ts';
import { ApiError } from '../../client/api-client.ts';
import { toYaml } from '../../client/yaml.ts';
import type { Command } from '../command.ts';
import { ContextError } from '../errors.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { lastAppliedName, withLastApplied } from '../last-applied.ts';
import { loadManifests, manifestFlags } from '../manifests.ts';
import { threeWayPatch } from '../merge-patch.ts';
import { kindLabel, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { outputFlags, reportObject } from '../output.ts';
import { resourceOfObject } from '../selection.ts';
import type { Session } from '../session.ts';
import { dryRunOf, dryRunSuffix, objectPath, writeFlags, writeQuery } from '../writes.ts';
import { pruneObjects } from './prune.ts';

const applyFlags: readonly FlagSpec[] = [
  ...manifestFlags,
  ...writeFlags,
  { name: 'server-side', type: 'boolean', help: 'Apply on the server (default)' },
  { name: 'client-side', type: 'boolean', help: 'Apply by the last-applied annotation' },
  { name: 'force-conflicts', type: 'boolean', help: 'Take fields other managers own' },
];

export const applyCommand: Command = {
  name: 'apply',
  summary: 'Apply a configuration to a resource by file name or stdin',
  usage: '-f FILENAME',
  flags: [
    ...applyFlags,
    ...outputFlags,
    { name: 'selector', short: 'l', type: 'text', help: 'Label selector of --prune' },
    { name: 'prune', type: 'boolean', help: 'Delete applied objects that are no longer given' },
    { name: 'all', type: 'boolean', help: 'Prune without a selector' },
    { name: 'prune-allowlist', type: 'list', help: 'Kinds to prune: GROUP/VERSION/KIND' },
  ],
  async run(session) {
    const { flags } = session;
    const prune = flags.boolean('prune');
    if (prune && !flags.has('selector') && !flags.boolean('all')) {
      throw new CliError(
        'all resources selected for prune without explicitly passing --all. ' +
          'To prune all resources, pass the --all flag. ' +
          'If you did not mean to prune all resources, specify a label selector',
      );
    }
    const applied: JsonObject[] = [];
    for (const { object, source } of await loadManifests(session)) {
      try {
        applied.push(await applyOne(session, object));
      } catch (error) {
        throw (
          conflictReport(error) ??
          new ContextError(`error when applying ${JSON.stringify(source)}`, error)
        );
      }
    }
    if (prune) await pruneObjects(session, { applied, manager: managerOf(session) });
    return 0;
  },
};

const isClientSide = (session: Session): boolean =>
  session.flags.boolean('client-side') || !session.flags.boolean('server-side', true);

function managerOf(session: Session): string {
  const otherwise = isClientSide(session) ? 'svcctl-client-side-apply' : 'svcctl';
  return session.flags.text('field-manager') ?? otherwise;
}

async function applyOne(session: Session, object: JsonObject): Promise<JsonObject> {
  if (isClientSide(session)) return applyClientSide(session, object);
  if (dryRunOf(session) === 'client') {
    throw new CliError(
      "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)",
    );
  }
  const applied = await applyOnServer(session, { object, dryRun: false });
  reportObject(session, applied, `serverside-applied${dryRunSuffix(session)}`);
  return applied;
}

async function applyOnServer(
  session: Session,
  { object, dryRun }: { object: JsonObject; dryRun: boolean },
): Promise<JsonObject> {
  const resource = await resourceOfObject(session, object);
  const answer = await session.client.send({
    method: 'PATCH',
    path: objectPath(session, { resource, object }),
    query: {
      ...writeQuery(session, managerOf(session)),
      force: String(session.flags.boolean('force-conflicts')),
      ...(dryRun ? { dryRun: 'All' } : {}),
    },
    contentType: 'application/apply-patch+yaml',
    body: object,
  });
  return answer.object;
}

/** Tells who owns the fields an apply was refused for; undefined for other failures. */
function conflictReport(error: unknown): CliError | undefined {
  if (!(error instanceof ApiError) || error.code !== 409) return undefined;
  const causes = (error.details?.causes ?? []).filter(
    (cause) => cause.reason === 'FieldManagerConflict',
  );
  if (causes.length === 0) return undefined;
  const byOwner = new Map<string, string[]>();
  for (const { message = '', field = '' } of causes) {
    byOwner.set(message, [...(byOwner.get(message) ?? []), field]);
  }
  const owners = [...byOwner].map(
    ([owner, fields]) => `${owner}:\n${fields.map((field) => `  - ${field}`).join('\n')}`,
  );
  const count = causes.length === 1 ? '1 conflict' : `${causes.length} conflicts`;
  return new CliError(
    `Apply failed with ${count}: ${owners.join('\n')}\n` +
      'These fields belong to other managers. To settle it, either take them over with\n' +
      '--force-conflicts, or leave them out of the applied object, or give them the\n' +
      'values they have on the server, which shares them.',
  );
}

async function applyClientSide(session: Session, object: JsonObject): Promise<JsonObject> {
  const resource = await resourceOfObject(session, object);
  const path = objectPath(session, { resource, object });
  const annotation = await lastAppliedName(session);
  const wanted = withLastApplied(object, annotation);
  const query = writeQuery(session, managerOf(session));
  const suffix = dryRunSuffix(session);
  const live = await getOrUndefined(session, path);
  const send = dryRunOf(session) !== 'client';
  if (live === undefined) {
    const collection = objectPath(session, { resource, object, name: '' });
    const request = { method: 'POST', path: collection, query, body: wanted };
    const created = send ? (await session.client.send(request)).object : wanted;
    reportObject(session, created, `created${suffix}`);
    return created;
  }
  const last = lastApplied(live, annotation);
  const patch = threeWayPatch({ last, wanted, live });
  if (Object.keys(patch).length === 0) {
    reportObject(session, live, `unchanged${suffix}`);
    return live;
  }
  const contentType = 'application/merge-patch+json';
  const request = { method: 'PATCH', path, query, contentType, body: patch };
  const patched = send ? (await session.client.send(request)).object : live;
  reportObject(session, patched, `configured${suffix}`);
  return patched;
}

function lastApplied(live: JsonObject, annotation: string): JsonObject {
  try {
    const value: unknown = JSON.parse(textAt(live, 'metadata', 'annotations', annotation));
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

async function getOrUndefined(session: Session, path: string): Promise<JsonObject | undefined> {
  try {
    return await session.client.get(path);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

export const diffCommand: Command = {
  name: 'diff',
  summary: 'Diff the live version against a would-be applied version',
  usage: '-f FILENAME',
  flags: [
    ...applyFlags,
    { name: 'show-managed-fields', type: 'boolean', help: 'Compare managedFields as well' },
  ],
  async run(session) {
    const folder = mkdtempSync(path.join(tmpdir(), 'svcctl-diff-'));
    try {
      const live = path.join(folder, 'LIVE');
      const merged = path.join(folder, 'MERGED');
      mkdirSync(live, { mode: 0o700 });
      mkdirSync(merged, { mode: 0o700 });
      for (const { object } of await loadManifests(session)) {
        const resource = await resourceOfObject(session, object);
        const current = await getOrUndefined(session, objectPath(session, { resource, object }));
        const after = await applyOnServer(session, { object, dryRun: true });
        const file = [kindLabel(after), namespaceOf(after), nameOf(after)].join('.');
        const shown = (one: JsonObject) => toYaml(comparable(session, one));
        if (current !== undefined) writeFileSync(path.join(live, file), shown(current));
        writeFileSync(path.join(merged, file), shown(after));
      }
      const program = session.io.env['KUBECTL_EXTERNAL_DIFF'] || 'diff -u -N';
      return await session.io.run('/bin/sh', ['-c', `${program} "$1" "$2"`, 'diff', live, merged]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function comparable(session: Session, object: JsonObject): JsonObject {
  const shown = object.kind === 'Secret' ? maskedSecret(object) : object;
  if (session.flags.boolean('show-managed-fields')) return shown;
  const { managedFields: _, ...metadata } = objectAt(shown, 'metadata');
  return { ...shown, metadata };
}

/** Keeps a Secret's values off the terminal, telling only equal length from none. */
function maskedSecret(object: JsonObject): JsonObject {
  const data: JsonObject = {};
  for (const key of Object.keys(objectAt(object, 'data'))) setMember(data, key, '***');
  return { ...object, data };
}
