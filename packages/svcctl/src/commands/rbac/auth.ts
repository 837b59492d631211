import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { CliError } from '../../io.ts';
import { objectAt, textAt } from '../../objects.ts';
import { outputFlags, printerOf } from '../../output/output.ts';
import { alignLines } from '../../output/table.ts';
import { sendReview } from '../../rbac/review.ts';
import { canICommand } from './can-i.ts';
import { reconcileCommand } from './reconcile.ts';

const whoamiCommand: Command = {
  name: 'whoami',
  summary: 'Show who the server takes you for',
  flags: outputFlags,
  async run(session, args) {
    if (args.length > 0) throw new CliError(`unexpected arguments: ${args.join(' ')}`);
    const object = await sendReview(session, 'SelfSubjectReview');
    const printer = printerOf(session);
    session.io.out(printer === undefined ? userTable(object) : printer(object));
    return 0;
  },
};

function userTable(review: JsonObject): string {
  const user = objectAt(review, 'status', 'userInfo');
  const list = (value: JsonValue | undefined) =>
    `[${Array.isArray(value) ? value.map(String).join(' ') : ''}]`;
  const extra = objectAt(user, 'extra');
  return alignLines([
    ['ATTRIBUTE', 'VALUE'],
    ['Username', textAt(user, 'username')],
    ...(textAt(user, 'uid') === '' ? [] : [['UID', textAt(user, 'uid')]]),
    ...(user.groups === undefined ? [] : [['Groups', list(user.groups)]]),
    ...Object.keys(extra)
      .sort()
      .map((key) => [`Extra: ${key}`, list(extra[key])]),
  ]);
}

export const authCommand: Command = {
  name: 'auth',
  summary: 'Inspect authorization',
  subcommands: [canICommand, reconcileCommand, whoamiCommand],
};
