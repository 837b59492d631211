import { apiVersionOf, type JsonObject } from '@wheelhouse/machinery';
import { lastAppliedName, saveConfigFlag, withLastApplied } from '../apply/last-applied.ts';
import { dryRunOf, dryRunQuery, dryRunSuffix, writeFlags } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { describeErrors } from '../errors.ts';
import { CliError } from '../io.ts';
import { manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf } from '../objects.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import {
  checkSelected,
  fetchTarget,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';

export const autoscaleCommand: Command = {
  name: 'autoscale',
  completes: 'objects',
  summary: 'Auto-scale a deployment, replica set, stateful set, or replication controller',
  usage: '(-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS',
  flags: [
    ...manifestFlags,
    ...outputFlags,
    ...writeFlags.filter((flag) => flag.name !== 'validate'),
    saveConfigFlag,
    { name: 'min', type: 'integer', help: 'Minimum number of Pods' },
    { name: 'max', type: 'integer', help: 'Maximum number of Pods; required' },
    {
      name: 'cpu-percent',
      type: 'integer',
      help: 'Target average CPU utilization, in percent of the requests',
    },
    { name: 'name', type: 'text', help: "Name of the autoscaler; default: the object's" },
  ],
  async run(session, args) {
    const range = rangeOf(session);
    const targets = await selectTargets(session, args);
    checkSelected(session, targets);
    const failures: unknown[] = [];
    let count = 0;
    for (const target of targets) {
      try {
        for (const object of await fetchTarget(session, target)) {
          await autoscale(session, { target, object, range });
          count += 1;
        }
      } catch (error) {
        if (session.io.signal.aborted) throw error;
        failures.push(error);
      }
    }
    if (failures.length > 0) {
      session.io.err(describeErrors(failures));
      return 1;
    }
    if (count === 0) throw new CliError('no objects passed to autoscale');
    return 0;
  },
};

interface Range {
  readonly min: number;
  readonly max: number;
}

function rangeOf({ flags }: Session): Range {
  if (!flags.has('max')) throw new CliError('required flag(s) "max" not set');
  const [min, max] = [flags.integer('min') ?? -1, flags.integer('max') ?? -1];
  if (max < 1) {
    throw new CliError(`--max=MAXPODS is required and must be at least 1, max: ${max}`);
  }
  if (max < min) {
    throw new CliError(
      '--max=MAXPODS must be larger or equal to --min=MINPODS, ' + `max: ${max}, min: ${min}`,
    );
  }
  return { min, max };
}

async function autoscale(
  session: Session,
  of: { readonly target: Target; readonly object: JsonObject; readonly range: Range },
): Promise<void> {
  const { target, object, range } = of;
  const { resource } = target;
  if (!resource.subresources.includes('scale')) {
    const { group, version } = resource;
    const label = `${group}/${version}, Resource=${resource.resource}`;
    throw new CliError(
      `cannot autoscale a ${resource.kind}: could not find scale subresource for ${label} in ` +
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
  const body = session.flags.boolean('save-config')
    ? withLastApplied(scaler, await lastAppliedName(session))
    : scaler;
  const { object: created } = await session.client.send({
    method: 'POST',
    path: targetPath({ resource: scalers, namespace, name: undefined }),
    query: {
      ...dryRunQuery(session),
      fieldManager: session.flags.text('field-manager') ?? 'svcctl-autoscale',
    },
    body,
  });
  reportObject(session, created, `autoscaled${suffix}`);
}
