import { ApiError } from '@wheelhouse/client';
import { aggregateText, apiVersionOf, errorText, type JsonObject } from '@wheelhouse/machinery';
import { recordAt, recorded, recordFlag } from '../apply/record.ts';
import {
  dryRunFlag,
  dryRunOf,
  dryRunQuery,
  dryRunSuffix,
  lastAppliedName,
  managerFlag,
  resourceVersionFlag,
  retryConflicts,
  withLastApplied,
  withNamespace,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { generatorFlags } from '../create-object.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError, throwFirst } from '../io.ts';
import { manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import {
  allFlag,
  checkSelected,
  fetchTarget,
  resourceText,
  selectorFlag,
  selectTargets,
  type Target,
  targetOf,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

/** Creates a HorizontalPodAutoscaler for each object, which must have a `scale` subresource. */
export const autoscaleCommand: Command = {
  name: 'autoscale',
  completes: 'objects',
  summary: 'Auto-scale a deployment, replica set, stateful set, or replication controller',
  usage: '(-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS',
  flags: [
    ...manifestFlags,
    ...generatorFlags,
    { name: 'min', type: 'integer', bits: 32, help: 'Minimum number of Pods' },
    { name: 'max', type: 'integer', bits: 32, help: 'Maximum number of Pods; required' },
    {
      name: 'cpu-percent',
      type: 'integer',
      bits: 32,
      help: 'Target average CPU utilization, in percent of the requests',
    },
    { name: 'name', type: 'text', help: "Name of the autoscaler; the object's by default" },
  ],
  async run(session, args) {
    const range = parseRange(session);
    const targets = await selectTargets(session, args, { filesMatch: 'file' });
    checkSelected(session, targets);
    let count = 0;
    const failures = await visitEach(session.io, targets, async (target) => {
      for (const object of await objectsOf(session, target)) {
        await autoscale(session, { target, object, range });
        count += 1;
      }
    });
    if (failures.length === 0 && count === 0) throw new CliError('no objects passed to autoscale');
    return reportFailures(session.io, failures);
  },
};

/** The objects of a target. Those of files are not read from the server, as in kubectl. */
async function objectsOf(session: Session, target: Target): Promise<JsonObject[]> {
  const { resource, object } = target;
  return object === undefined
    ? fetchTarget(session, target)
    : [withNamespace(session, { resource, object })];
}

interface Range {
  readonly min: number;
  readonly max: number;
}

function parseRange({ flags }: Session): Range {
  if (!flags.has('max')) throw new CliError('required flag(s) "max" not set');
  const [min, max] = [flags.integer('min') ?? -1, flags.integer('max') ?? -1];
  if (max < 1) throw new CliError(`--max=MAXPODS is required and must be at least 1, max: ${max}`);
  if (max < min) {
    throw new CliError(
      `--max=MAXPODS must be larger or equal to --min=MINPODS, max: ${max}, min: ${min}`,
    );
  }
  return { min, max };
}

async function autoscale(
  session: Session,
  options: { readonly target: Target; readonly object: JsonObject; readonly range: Range },
): Promise<void> {
  const { target, object, range } = options;
  const { resource } = target;
  if (!resource.subresources.includes('scale')) {
    throw new CliError(
      `cannot autoscale a ${resource.kind}: could not find scale subresource for ${resourceText(resource)} in ` +
        'discovery information',
    );
  }
  const percent = session.flags.integer('cpu-percent') ?? -1;
  const scaler: JsonObject = {
    apiVersion: 'autoscaling/v1',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: session.flags.text('name') || nameOf(object) },
    spec: {
      maxReplicas: range.max,
      ...(range.min > 0 ? { minReplicas: range.min } : {}),
      scaleTargetRef: {
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        name: nameOf(object),
      },
      ...(percent < 0 ? {} : { targetCPUUtilizationPercentage: percent }),
    },
  };
  const suffix = dryRunSuffix(session);
  if (dryRunOf(session) === 'client') {
    reportObject(session, scaler, `created${suffix}`);
    return;
  }
  const scalers = (await session.mapper()).byKind('autoscaling/v1', 'HorizontalPodAutoscaler');
  if (scalers === undefined) throw new CliError('the server does not serve autoscaling/v1');
  const namespace = namespaceOf(object) || session.namespace;
  const configured = session.flags.boolean('save-config')
    ? withLastApplied(scaler, await lastAppliedName(session))
    : scaler;
  const { object: created } = await session.client.send({
    method: 'POST',
    path: targetPath({ resource: scalers, namespace, name: undefined }),
    query: {
      ...dryRunQuery(session),
      fieldManager: session.flags.text('field-manager') ?? 'svcctl-autoscale',
    },
    body: await recorded(session, configured),
  });
  reportObject(session, created, `autoscaled${suffix}`);
}

/** Maximum number of attempts after conflicts. */
const attemptsMax = 5;

/**
 * Sets the replicas through the `scale` subresource. Preconditions are `--current-replicas` and
 * `--resource-version`; `--timeout` waits for the replicas.
 */
export const scaleCommand: Command = {
  name: 'scale',
  completes: 'objects',
  summary: 'Set a new size for a deployment, replica set or stateful set',
  usage: '--replicas=COUNT (-f FILENAME | TYPE NAME | TYPE/NAME)',
  flags: [
    selectorFlag,
    ...manifestFlags,
    dryRunFlag,
    managerFlag,
    ...outputFlags,
    allFlag,
    { name: 'replicas', type: 'integer', help: 'The new number of replicas; required' },
    {
      name: 'current-replicas',
      type: 'integer',
      help: 'Fail unless this is the current number of replicas',
    },
    resourceVersionFlag,
    recordFlag,
    {
      name: 'timeout',
      type: 'duration',
      help: 'How long to wait until the status has the new number (0: do not wait)',
    },
  ],
  async run(session, args) {
    const replicas = parseReplicas(session);
    const { scaled, failures } = await objectsToScale(session, args);
    if (session.flags.has('resource-version') && scaled.length > 1) {
      throw new CliError('cannot use --resource-version with multiple resources');
    }
    for (const { object, path } of scaled) {
      if (dryRunOf(session) !== 'client') {
        await scale(session, path, replicas);
        const query = { ...dryRunQuery(session), fieldManager: scaleManager(session) };
        await recordAt(session, { path: path.replace(/\/scale$/, ''), query, object });
      }
      if (dryRunOf(session) === 'none') await waitForReplicas(session, { path, replicas, object });
      reportObject(session, object, `scaled${dryRunSuffix(session)}`);
    }
    return reportFailures(session.io, failures);
  },
};

/** Returns `--replicas`. Throws CliError for invalid counts. */
function parseReplicas({ flags }: Session): number {
  const replicas = flags.integer('replicas') ?? 0;
  throwFirst([
    !flags.has('replicas') && 'required flag(s) "replicas" not set',
    replicas < 0 &&
      'The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0',
    (flags.integer('current-replicas') ?? -1) < -1 &&
      'The --current-replicas must specify an integer of -1 or greater',
  ]);
  return replicas;
}

/** Objects to scale, and the failures to read others. */
interface ScaleSelection {
  readonly scaled: readonly { readonly object: JsonObject; readonly path: string }[];
  readonly failures: readonly unknown[];
}

/**
 * Selects the objects to scale. Those of files are not read from the server; they are reported as
 * the files have them. Rejects with CliError if there is none.
 */
async function objectsToScale(session: Session, args: readonly string[]): Promise<ScaleSelection> {
  const targets = await selectTargets(session, args, { filesMatch: 'file' });
  checkSelected(session, targets);
  const scaled: { readonly object: JsonObject; readonly path: string }[] = [];
  const failures = await visitEach(session.io, targets, async (target) => {
    for (const object of await objectsOf(session, target)) {
      scaled.push({ object, path: targetPath(targetOf(target.resource, object), 'scale') });
    }
  });
  if (scaled.length > 0) return { scaled, failures };
  const severe = failures.find((failure) => !(failure instanceof ApiError));
  if (severe !== undefined) throw severe;
  const text = failures.length === 0 ? '' : ` ${aggregateText(failures.map(errorText))}`;
  throw new CliError(`no objects passed to scale${text}`);
}

const scaleManager = ({ flags }: Session): string => flags.text('field-manager') ?? 'svcctl-scale';

/** Interval at which `--timeout` polls the status. */
const pollMs = 500;

/**
 * Waits, up to `--timeout`, until the status has the number of replicas or someone else changes the
 * desired number. Rejects with CliError after the timeout.
 */
async function waitForReplicas(
  session: Session,
  scaling: { readonly path: string; readonly replicas: number; readonly object: JsonObject },
): Promise<void> {
  const timeoutMs = session.flags.durationMs('timeout') ?? 0;
  if (timeoutMs <= 0) return;
  const { path, replicas, object } = scaling;
  const end = session.clock.monotonic() + timeoutMs;
  await withProgress(session, `waiting for ${nameOf(object)}`, async () => {
    for (;;) {
      const current = await session.client.get(path);
      const { replicas: specified = 0 } = objectAt(current, 'spec');
      const { replicas: running = 0 } = objectAt(current, 'status');
      if (specified !== replicas || running === replicas) return;
      if (session.clock.monotonic() + pollMs > end) {
        throw new CliError(`timed out waiting for "${nameOf(object)}" to be synced`);
      }
      await session.pause(pollMs);
    }
  });
}

async function scale(session: Session, path: string, replicas: number): Promise<void> {
  const current = session.flags.integer('current-replicas') ?? -1;
  const version = session.flags.text('resource-version') ?? '';
  const query = { ...dryRunQuery(session), fieldManager: scaleManager(session) };
  if (current < 0 && version === '') {
    const contentType = 'application/merge-patch+json';
    const body = { spec: { replicas } };
    await session.client.send({ method: 'PATCH', path, query, contentType, body });
    return;
  }
  await retryConflicts(attemptsMax, async () => {
    const before = await session.client.get(path);
    checkPreconditions(before, { current, version });
    const body = { ...before, spec: { ...objectAt(before, 'spec'), replicas } };
    await session.client.send({ method: 'PUT', path, query, body });
  });
}

function checkPreconditions(
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
