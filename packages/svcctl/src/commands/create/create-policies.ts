import type { JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { createFlags, createObject, metadataIn, onlyName } from '../../create-object.ts';
import { CliError } from '../../io.ts';
import { serverDialect } from '../../server-dialect.ts';
import type { Session } from '../../session.ts';
import { matchedLabels } from '../../set/selector-labels.ts';
import { quantitiesOf } from '../set/resources.ts';

const budgetCommand: Command = {
  name: 'poddisruptionbudget',
  aliases: ['pdb'],
  summary: 'Create a pod disruption budget with the specified name',
  usage: 'NAME --selector=SELECTOR --min-available=N',
  flags: [
    ...createFlags,
    { name: 'min-available', type: 'text', help: 'Pods that must be available: 2 or 50%' },
    { name: 'max-unavailable', type: 'text', help: 'Pods that may be unavailable: 2 or 50%' },
    { name: 'selector', type: 'text', help: 'Labels of the Pods: app=web' },
  ],
  run(session, args) {
    const name = onlyName(args);
    const [minimum = '', maximum = '', selector = ''] = [
      'min-available',
      'max-unavailable',
      'selector',
    ].map((flag) => session.flags.text(flag));
    const isAmount = (text: string) => /^\d+%?$/.test(text);
    const problem = [
      selector === '' && 'a selector must be specified',
      minimum === '' &&
        maximum === '' &&
        'one of min-available or max-unavailable must be specified',
      minimum !== '' &&
        maximum !== '' &&
        'min-available and max-unavailable cannot be both specified',
      minimum !== '' && !isAmount(minimum) && 'invalid format specified for min-available',
      maximum !== '' && !isAmount(maximum) && 'invalid format specified for max-unavailable',
    ].find((one) => one !== false);
    if (problem !== undefined) throw new CliError(problem);
    const amount = (text: string) => (text.endsWith('%') ? text : Number(text));
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: metadataIn(session, name),
      spec: {
        ...(minimum === ''
          ? { maxUnavailable: amount(maximum) }
          : { minAvailable: amount(minimum) }),
        selector: { matchLabels: matchedLabels(selector) },
      },
    };
    return createObject(session, budget, { doing: 'failed to create poddisruptionbudgets:' });
  },
};

const priorityClassCommand: Command = {
  name: 'priorityclass',
  aliases: ['pc'],
  summary: 'Create a priority class with the specified name',
  usage: 'NAME --value=VALUE --global-default=BOOL',
  flags: [
    ...createFlags,
    { name: 'value', type: 'integer', help: 'The priority' },
    { name: 'global-default', type: 'boolean', help: 'Whether it applies to Pods without a class' },
    { name: 'description', type: 'text', help: 'When to use the class' },
    { name: 'preemption-policy', type: 'text', help: 'PreemptLowerPriority (default) or Never' },
  ],
  async run(session, args) {
    const name = onlyName(args);
    const description = session.flags.text('description') ?? '';
    const { group } = await serverDialect(session);
    const priorityClass = {
      apiVersion: `${group('scheduling')}/v1`,
      ...(description === '' ? {} : { description }),
      ...(session.flags.boolean('global-default') ? { globalDefault: true } : {}),
      kind: 'PriorityClass',
      metadata: { name },
      preemptionPolicy: session.flags.text('preemption-policy') ?? 'PreemptLowerPriority',
      value: session.flags.integer('value') ?? 0,
    };
    return createObject(session, priorityClass, { doing: 'failed to create priorityclass:' });
  },
};

const quotaCommand: Command = {
  name: 'quota',
  aliases: ['resourcequota'],
  summary: 'Create a quota with the specified name',
  usage: 'NAME [--hard=KEY1=VALUE1,KEY2=VALUE2] [--scopes=SCOPE1,SCOPE2]',
  flags: [
    ...createFlags,
    { name: 'hard', type: 'text', help: 'The limits: pods=10,cpu=4' },
    { name: 'scopes', type: 'text', help: 'Scopes that an object must match to count' },
  ],
  run(session, args) {
    const name = onlyName(args);
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: metadataIn(session, name),
      spec: quotaSpec(session),
    };
    return createObject(session, quota, { doing: 'failed to create quota:' });
  },
};

function quotaSpec({ flags }: Session): JsonObject {
  const hard = quantitiesOf(flags.text('hard') ?? '');
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
