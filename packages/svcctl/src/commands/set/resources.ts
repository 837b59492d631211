import { type JsonObject, parseQuantity, setMember } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { describeErrors } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { changeContainers, copyAt, withPodSpec } from '../../set/pod-spec.ts';
import { setEach, setFlags } from '../../set/set-objects.ts';

export const resourcesCommand: Command = {
  name: 'resources',
  completes: 'objects',
  summary: 'Update resource requests/limits on objects with pod templates',
  usage: '(-f FILENAME | TYPE NAME) [--limits=LIMITS] [--requests=REQUESTS]',
  flags: [
    ...setFlags,
    {
      name: 'containers',
      short: 'c',
      type: 'text',
      help: 'Names of containers; * matches any text',
    },
    { name: 'limits', type: 'text', help: 'cpu=100m,memory=256Mi' },
    { name: 'requests', type: 'text', help: 'cpu=100m,memory=256Mi' },
  ],
  async run(session, args) {
    const [limits = '', requests = ''] = ['limits', 'requests'].map((name) =>
      session.flags.text(name),
    );
    if (limits === '' && requests === '') {
      throw new CliError(
        'you must specify an update to requests or limits (in the form of --requests/--limits)',
      );
    }
    const amounts = { limits: quantitiesOf(limits), requests: quantitiesOf(requests) };
    const selector = session.flags.text('containers') ?? '*';
    const absent: CliError[] = [];
    const exitCode = await setEach(session, args, {
      done: 'resource requirements updated',
      doing: 'failed to patch resources update to pod template',
      change: (one) =>
        withPodSpec(one, (before) => {
          const { spec, found } = changeContainers(before, selector, (container) =>
            withAmounts(container, amounts),
          );
          if (!found) {
            absent.push(new CliError(`error: unable to find container named ${selector}`));
          }
          return spec;
        }),
    });
    if (absent.length === 0) return exitCode;
    session.io.err(describeErrors(absent));
    return 1;
  },
};

/** Reads `cpu=1,memory=1Gi`. Throws CliError. */
export function quantitiesOf(text: string): ReadonlyMap<string, string> {
  const amounts = new Map<string, string>();
  for (const statement of text === '' ? [] : text.split(',')) {
    const [name = '', amount, ...more] = statement.split('=');
    if (amount === undefined || more.length > 0) {
      throw new CliError(`Invalid argument syntax ${statement}, expected <resource>=<value>`);
    }
    const quantity = parseQuantity(amount);
    if ('error' in quantity) throw new CliError(quantity.error);
    amounts.set(name, quantity.text);
  }
  return amounts;
}

function withAmounts(
  container: JsonObject,
  amounts: Readonly<Record<'limits' | 'requests', ReadonlyMap<string, string>>>,
): JsonObject {
  const resources = copyAt(container, 'resources');
  for (const list of ['limits', 'requests'] as const) {
    if (amounts[list].size === 0) continue;
    const after = copyAt(resources, list);
    for (const [name, amount] of amounts[list]) setMember(after, name, amount);
    resources[list] = after;
  }
  return { ...container, resources };
}
