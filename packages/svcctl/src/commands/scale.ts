import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { dryRunOf, dryRunSuffix, writeFlags, writeQuery } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import {
  checkSelected,
  fetchTarget,
  selectionFlags,
  selectTargets,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';

/** How often a change of the scale is tried that others' changes come between. */
const attemptsMax = 5;

export const scaleCommand: Command = {
  name: 'scale',
  completes: 'objects',
  summary: 'Set a new size for a deployment, replica set or stateful set',
  usage: '--replicas=COUNT (-f FILENAME | TYPE NAME | TYPE/NAME)',
  flags: [
    ...selectionFlags,
    ...writeFlags.filter((flag) => flag.name !== 'validate'),
    ...outputFlags,
    { name: 'all', type: 'boolean', help: 'All objects of the types' },
    { name: 'replicas', type: 'text', help: 'The new number of replicas; required' },
    {
      name: 'current-replicas',
      type: 'text',
      help: 'Only if this is the current number of replicas',
    },
    { name: 'resource-version', type: 'text', help: 'Only if this is the current resourceVersion' },
  ],
  async run(session, args) {
    const replicas = session.flags.integer('replicas') ?? -1;
    if (replicas < 0) {
      throw new CliError(
        'The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0',
      );
    }
    const targets = await selectTargets(session, args);
    checkSelected(session, targets);
    const found: { readonly object: JsonObject; readonly path: string }[] = [];
    for (const target of targets) {
      for (const object of await fetchTarget(session, target)) {
        const at = { ...target, namespace: namespaceOf(object), name: nameOf(object) };
        found.push({ object, path: targetPath(at, 'scale') });
      }
    }
    if (found.length === 0) throw new CliError('no objects passed to scale');
    if (session.flags.has('resource-version') && found.length > 1) {
      throw new CliError('cannot use --resource-version with multiple resources');
    }
    for (const { object, path } of found) {
      if (dryRunOf(session) !== 'client') await scale(session, path, replicas);
      reportObject(session, object, `scaled${dryRunSuffix(session)}`);
    }
    return 0;
  },
};

async function scale(session: Session, path: string, replicas: number): Promise<void> {
  const current = session.flags.integer('current-replicas') ?? -1;
  const version = session.flags.text('resource-version') ?? '';
  const { fieldValidation: _, ...query } = writeQuery(session, 'svcctl-scale');
  if (current < 0 && version === '') {
    const contentType = 'application/merge-patch+json';
    const body = { spec: { replicas } };
    await session.client.send({ method: 'PATCH', path, query, contentType, body });
    return;
  }
  for (let attempt = 1; ; attempt += 1) {
    const before = await session.client.get(path);
    checkBefore(before, { current, version });
    const body = { ...before, spec: { ...objectAt(before, 'spec'), replicas } };
    try {
      await session.client.send({ method: 'PUT', path, query, body });
      return;
    } catch (error) {
      const isConflict = error instanceof ApiError && error.reason === 'Conflict';
      if (!isConflict || attempt === attemptsMax) throw error;
    }
  }
}

function checkBefore(
  before: JsonObject,
  { current, version }: { readonly current: number; readonly version: string },
): void {
  const { replicas = 0 } = objectAt(before, 'spec');
  if (current >= 0 && replicas !== current) {
    throw new CliError(`Expected replicas to be ${current}, was ${String(replicas)}`);
  }
  const currentVersion = textAt(before, 'metadata', 'resourceVersion');
  if (version !== '' && currentVersion !== version) {
    throw new CliError(`Expected resource version to be ${version}, was ${currentVersion}`);
  }
}
