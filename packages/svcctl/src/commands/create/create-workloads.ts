import { generateName, type JsonObject } from '@wheelhouse/machinery';
import { labelSelectorOf, parseQuantities } from '../../argument-values.ts';
import type { Command } from '../../command.ts';
import {
  createFlags,
  createObject,
  nameAndCommand,
  newMetadata,
  requireName,
} from '../../create-object.ts';
import { CliError, throwFirst } from '../../io.ts';
import { nameOf, objectAt, textAt } from '../../objects.ts';
import { getByLabel } from '../../selection.ts';
import type { Session } from '../../session.ts';

const budgetCommand: Command = {
  name: 'poddisruptionbudget',
  aliases: ['pdb'],
  summary: 'Create a pod disruption budget with the specified name',
  usage: 'NAME --selector=SELECTOR --min-available=N',
  flags: [
    ...createFlags,
    { name: 'min-available', type: 'text', help: 'Pods that must be available, such as 2 or 50%' },
    {
      name: 'max-unavailable',
      type: 'text',
      help: 'Pods that may be unavailable, such as 2 or 50%',
    },
    { name: 'selector', type: 'text', help: 'Labels of the Pods, such as app=web' },
  ],
  run(session, args) {
    const name = requireName(session, args);
    const [minimum = '', maximum = '', selector = ''] = [
      'min-available',
      'max-unavailable',
      'selector',
    ].map((flag) => session.flags.text(flag));
    const isAmount = (text: string) => /^\d+%?$/.test(text);
    throwFirst([
      selector === '' && 'a selector must be specified',
      minimum === '' &&
        maximum === '' &&
        'one of min-available or max-unavailable must be specified',
      minimum !== '' &&
        maximum !== '' &&
        'min-available and max-unavailable cannot be both specified',
      minimum !== '' && !isAmount(minimum) && 'invalid format specified for min-available',
      maximum !== '' && !isAmount(maximum) && 'invalid format specified for max-unavailable',
    ]);
    const amount = (text: string) => (text.endsWith('%') ? text : Number(text));
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: newMetadata(session, name),
      spec: {
        ...(minimum === ''
          ? { maxUnavailable: amount(maximum) }
          : { minAvailable: amount(minimum) }),
        selector: labelSelectorOf(selector),
      },
    };
    return createObject(session, budget, { errorPrefix: 'failed to create poddisruptionbudgets:' });
  },
};

const priorityClassCommand: Command = {
  name: 'priorityclass',
  aliases: ['pc'],
  summary: 'Create a priority class with the specified name',
  usage: 'NAME --value=VALUE --global-default=BOOL',
  flags: [
    ...createFlags,
    { name: 'value', type: 'integer', bits: 32, help: 'The priority' },
    { name: 'global-default', type: 'boolean', help: 'Use the class for Pods without one' },
    { name: 'description', type: 'text', help: 'When to use the class' },
    { name: 'preemption-policy', type: 'text', help: 'PreemptLowerPriority (default) or Never' },
  ],
  async run(session, args) {
    const name = requireName(session, args);
    const description = session.flags.text('description') ?? '';
    const { group } = await session.dialect();
    const priorityClass = {
      apiVersion: `${group('scheduling')}/v1`,
      ...(description === '' ? {} : { description }),
      ...(session.flags.boolean('global-default') ? { globalDefault: true } : {}),
      kind: 'PriorityClass',
      metadata: { name },
      preemptionPolicy: session.flags.text('preemption-policy') ?? 'PreemptLowerPriority',
      value: session.flags.integer('value') ?? 0,
    };
    return createObject(session, priorityClass, { errorPrefix: 'failed to create priorityclass:' });
  },
};

const quotaCommand: Command = {
  name: 'quota',
  aliases: ['resourcequota'],
  summary: 'Create a quota with the specified name',
  usage: 'NAME [--hard=KEY1=VALUE1,KEY2=VALUE2] [--scopes=SCOPE1,SCOPE2]',
  flags: [
    ...createFlags,
    { name: 'hard', type: 'text', help: 'The limits, such as pods=10,cpu=4' },
    { name: 'scopes', type: 'text', help: 'Scopes that an object must match to count' },
  ],
  run(session, args) {
    const name = requireName(session, args);
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: newMetadata(session, name),
      spec: quotaSpec(session),
    };
    return createObject(session, quota, { errorPrefix: 'failed to create quota:' });
  },
};

function quotaSpec({ flags }: Session): JsonObject {
  const hard = parseQuantities(flags.text('hard') ?? '');
  const scopes = flags.text('scopes') ?? '';
  const list = scopes === '' ? [] : scopes.split(',');
  if (list.includes('')) throw new CliError('invalid resource quota scope ""');
  return {
    ...(hard.size === 0 ? {} : { hard: Object.fromEntries(hard) }),
    ...(list.length === 0 ? {} : { scopes: list }),
  };
}

/** `create poddisruptionbudget`, `create priorityclass`, and `create quota`. */
export const createPolicyCommands: readonly Command[] = [
  budgetCommand,
  priorityClassCommand,
  quotaCommand,
];

/** Throws CliError for missing flags. */
function requireFlags({ flags }: Session, names: readonly string[]): void {
  const missing = names.filter((name) => !flags.has(name)).map((name) => JSON.stringify(name));
  if (missing.length > 0) throw new CliError(`required flag(s) ${missing.join(', ')} not set`);
}

const deploymentCommand: Command = {
  name: 'deployment',
  aliases: ['deploy'],
  summary: 'Create a deployment with the specified name',
  usage: 'NAME --image=IMAGE -- [COMMAND] [ARGUMENTS...]',
  flags: [
    ...createFlags,
    { name: 'image', type: 'items', help: 'Image of a container; repeatable' },
    { name: 'port', type: 'integer', bits: 32, help: 'Port of the first container' },
    { name: 'replicas', short: 'r', type: 'integer', bits: 32, help: 'Number of replicas (1)' },
  ],
  run(session, args) {
    requireFlags(session, ['image']);
    const { name, command } = nameAndCommand(session, args);
    const images = session.flags.list('image');
    if (images.length > 1 && command.length > 0) {
      throw new CliError('cannot specify multiple --image options and command');
    }
    const port = session.flags.integer('port') ?? -1;
    const containers = images.map((image, at) => ({
      ...createContainer({ name: containerName(image), image, command }),
      ...(at === 0 && port >= 0 ? { ports: [{ containerPort: port }] } : {}),
    }));
    const labels = { app: name };
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { ...newMetadata(session, name), labels },
      spec: {
        replicas: session.flags.integer('replicas') ?? 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    };
    return createObject(session, deployment, { errorPrefix: 'failed to create deployment:' });
  },
};

const createContainer = (options: {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
}): JsonObject => ({
  image: options.image,
  name: options.name,
  ...(options.command.length === 0 ? {} : { command: [...options.command] }),
});

/** The last part of an image's name, with a random suffix if characters are replaced. */
function containerName(image: string): string {
  const last = image.slice(image.lastIndexOf('/') + 1);
  const [name = ''] = last.split(/[:@]/);
  if (!/[._]/.test(name)) return name;
  return generateName(`${name.replaceAll(/[._]/g, '-')}-`);
}

const jobCommand: Command = {
  name: 'job',
  summary: 'Create a job with the specified name',
  usage: 'NAME --image=IMAGE [--from=cronjob/NAME] -- [COMMAND] [ARGUMENTS...]',
  flags: [
    ...createFlags,
    { name: 'image', type: 'text', help: 'Image of the container' },
    { name: 'from', type: 'text', help: 'The CronJob to run: cronjob/NAME' },
  ],
  async run(session, args) {
    const { name, command } = nameAndCommand(session, args);
    const [image = '', from = ''] = ['image', 'from'].map((flag) => session.flags.text(flag));
    if ((image === '') === (from === '')) {
      throw new CliError('either --image or --from must be specified');
    }
    if (from !== '' && command.length > 0) throw new CliError('cannot specify --from and command');
    const job =
      from === ''
        ? {
            apiVersion: 'batch/v1',
            kind: 'Job',
            metadata: newMetadata(session, name),
            spec: jobSpec({ name, image, command, restartPolicy: 'Never' }),
          }
        : await jobFromCronJob(session, name, from);
    return createObject(session, job, { errorPrefix: 'failed to create job:' });
  },
};

function jobSpec(options: {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly restartPolicy: string;
}): JsonObject {
  const { restartPolicy } = options;
  return { template: { spec: { containers: [createContainer(options)], restartPolicy } } };
}

/**
 * Creates a Job as the CronJob's controller would, but annotated as manual. Rejects with CliError.
 */
async function jobFromCronJob(session: Session, name: string, from: string): Promise<JsonObject> {
  const cronJob = await getByLabel(session, from);
  const apiVersion = textAt(cronJob, 'apiVersion');
  const kind = textAt(cronJob, 'kind');
  if (apiVersion !== 'batch/v1' || kind !== 'CronJob') {
    throw new CliError(`unknown object type *${apiVersion.split('/').at(-1)}.${kind}`);
  }
  const { label } = await session.dialect();
  const template = objectAt(cronJob, 'spec', 'jobTemplate');
  const labels = objectAt(template, 'metadata', 'labels');
  const uid = textAt(cronJob, 'metadata', 'uid');
  return {
    apiVersion,
    kind: 'Job',
    metadata: {
      ...newMetadata(session, name),
      annotations: {
        [label('instantiate', 'cronjob')]: 'manual',
        ...objectAt(template, 'metadata', 'annotations'),
      },
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ownerReferences: [{ apiVersion, controller: true, kind, name: nameOf(cronJob), uid }],
    },
    spec: objectAt(template, 'spec'),
  };
}

const cronJobCommand: Command = {
  name: 'cronjob',
  aliases: ['cj'],
  summary: 'Create a cron job with the specified name',
  usage: "NAME --image=IMAGE --schedule='0/5 * * * ?' -- [COMMAND] [ARGUMENTS...]",
  flags: [
    ...createFlags,
    { name: 'image', type: 'text', help: 'Image of the container' },
    { name: 'schedule', type: 'text', help: 'When to run, in the format of cron' },
    { name: 'restart', type: 'text', help: 'OnFailure (default) or Never' },
  ],
  run(session, args) {
    requireFlags(session, ['image', 'schedule']);
    const { name, command } = nameAndCommand(session, args);
    const image = session.flags.text('image') ?? '';
    const restartPolicy = session.flags.text('restart') || 'OnFailure';
    const spec = jobSpec({ name, image, command, restartPolicy });
    const cronJob = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: newMetadata(session, name),
      spec: {
        jobTemplate: { metadata: { name }, spec },
        schedule: session.flags.text('schedule') ?? '',
      },
    };
    return createObject(session, cronJob, { errorPrefix: 'failed to create cronjob:' });
  },
};

/** `create deployment`, `create job`, and `create cronjob`. */
export const createWorkloadCommands: readonly Command[] = [
  deploymentCommand,
  jobCommand,
  cronJobCommand,
];
