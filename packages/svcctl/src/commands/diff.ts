import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ApiResource, toYaml } from '@wheelhouse/client';
import { type JsonObject, setMember } from '@wheelhouse/machinery';
import { previewApply } from '../apply/client-side-apply.ts';
import { allowedKinds, findLeftovers, pruneFlags } from '../apply/prune.ts';
import { applyFlags, applyOnServer, isClientSide, managerOf } from '../apply/server-side-apply.ts';
import { getOrUndefined, objectPath } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { describeError } from '../errors.ts';
import { loadManifests, manifestFilter } from '../manifests.ts';
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
  async run(session) {
    const folder = mkdtempSync(path.join(tmpdir(), 'svcctl-diff-'));
    let exitCode = failureCode;
    try {
      const prunes = session.flags.boolean('prune');
      const kinds = prunes ? await allowedKinds(session) : undefined;
      const applied: JsonObject[] = [];
      const live = path.join(folder, 'LIVE');
      const merged = path.join(folder, 'MERGED');
      mkdirSync(live, { mode: 0o700 });
      mkdirSync(merged, { mode: 0o700 });
      const visible = (object: JsonObject) => toYaml(prepareForDiff(session, object));
      const manifests = await loadManifests(session);
      for (const manifest of manifests.filter(manifestFilter(session))) {
        const { object } = manifest;
        const resource = await resourceOfObject(session, object);
        const current = await getOrUndefined(session, objectPath(session, { resource, object }));
        const after = isClientSide(session)
          ? await previewApply(session, manifest, await managerOf(session))
          : await applyOnServer(session, { object, dryRun: true });
        const file = fileName(resource, after);
        applied.push(current ?? after);
        if (current !== undefined) writeFileSync(path.join(live, file), visible(current));
        writeFileSync(path.join(merged, file), visible(after));
      }
      if (prunes) {
        for await (const { resource, object } of findLeftovers(session, { applied, kinds })) {
          writeFileSync(path.join(live, fileName(resource, object)), visible(object));
        }
      }
      const program = session.io.env['KUBECTL_EXTERNAL_DIFF'] || 'diff -u -N';
      exitCode = await session.io.run('/bin/sh', [
        '-c',
        `${program} "$1" "$2"`,
        'diff',
        live,
        merged,
      ]);
    } catch (error) {
      if (session.io.signal.aborted) throw error;
      session.io.err(describeError(error).text);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    return exitCode;
  },
};

const fileName = ({ group, version, kind }: ApiResource, object: JsonObject): string =>
  [...(group === '' ? [] : [group]), version, kind, namespaceOf(object), nameOf(object)].join('.');

function prepareForDiff(session: Session, object: JsonObject): JsonObject {
  const visible = object.kind === 'Secret' ? maskSecret(object) : object;
  if (session.flags.boolean('show-managed-fields')) return visible;
  const { managedFields: _, ...metadata } = objectAt(visible, 'metadata');
  return { ...visible, metadata };
}

/** Hides the values of a Secret. */
function maskSecret(object: JsonObject): JsonObject {
  const data: JsonObject = {};
  for (const key of Object.keys(objectAt(object, 'data'))) setMember(data, key, '***');
  return { ...object, data };
}
