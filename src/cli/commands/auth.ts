import type { JsonObject, JsonValue } from '../../base/json.ts';
import { resourcePath } from '../../client/rest-mapper.ts';
import { apiVersionOf } from '../../meta/types.ts';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { listAt, objectAt, textAt } from '../objects.ts';
import { outputFlags, printerOf } from '../output.ts';
import type { Session } from '../session.ts';
import { alignLines } from '../table.ts';

const canICommand: Command = {
  name: 'can-i',
  summary: 'Check whether an action is allowed',
  usage: 'VERB [TYPE | TYPE/NAME | NONRESOURCEURL]',
  flags: [
    { name: 'all-namespaces', short: 'A', type: 'boolean', help: 'In all namespaces' },
    { name: 'quiet', short: 'q', type: 'boolean', help: 'Only the exit code' },
    { name: 'list', type: 'boolean', help: 'Print all allowed actions' },
    { name: 'subresource', type: 'text', help: 'Sub-resource such as log or scale' },
    { name: 'no-headers', type: 'boolean', help: 'Leave the heading out' },
  ],
  async run(session, args) {
    if (session.flags.boolean('list')) return listRules(session);
    const [verb, what, name] = args;
    if (verb === undefined || what === undefined) {
      throw new CliError(
        'you must specify two arguments: verb resource or verb resource/resourceName',
      );
    }
    const spec = what.startsWith('/')
      ? { nonResourceAttributes: { verb, path: what } }
      : { resourceAttributes: await attributesOf(session, { verb, what, name }) };
    const status = objectAt(await review(session, 'SelfSubjectAccessReview', spec), 'status');
    const allowed = status.allowed === true;
    if (!session.flags.boolean('quiet')) session.io.out(answerText(status, allowed));
    return allowed ? 0 : 1;
  },
};

function answerText(status: JsonObject, allowed: boolean): string {
  const reason = textAt(status, 'reason');
  const error = textAt(status, 'evaluationError');
  const more = `${reason === '' ? '' : ` - ${reason}`}${error === '' ? '' : ` - ${error}`}`;
  return `${allowed ? 'yes' : 'no'}${allowed ? '' : more}\n`;
}

async function attributesOf(
  session: Session,
  request: { verb: string; what: string; name: string | undefined },
): Promise<JsonObject> {
  const [type = '', slashName] = request.what.split('/');
  const resource = type === '*' ? undefined : (await session.mapper()).byName(type);
  if (resource === undefined && type !== '*') {
    session.io.err(`Warning: the server doesn't have a resource type '${type}'\n`);
  }
  const [plain = '', ...group] = type.split('.');
  const name = slashName ?? request.name;
  const anywhere = session.flags.boolean('all-namespaces') || resource?.namespaced === false;
  return {
    ...(anywhere ? {} : { namespace: session.namespace }),
    verb: request.verb,
    group: type === '*' ? '*' : (resource?.group ?? group.join('.')),
    resource: resource?.resource ?? plain,
    ...(session.flags.has('subresource')
      ? { subresource: session.flags.text('subresource') ?? '' }
      : {}),
    ...(name === undefined ? {} : { name }),
  };
}

async function review(session: Session, kind: string, spec: JsonObject): Promise<JsonObject> {
  const resource = await session.resourceOfKind(kind);
  const { object } = await session.client.send({
    method: 'POST',
    path: resourcePath(resource, {}),
    body: { apiVersion: apiVersionOf(resource), kind, spec },
  });
  return object;
}

async function listRules(session: Session): Promise<number> {
  const spec = { namespace: session.namespace };
  const status = objectAt(await review(session, 'SelfSubjectRulesReview', spec), 'status');
  const texts = (value: JsonValue | undefined): string[] =>
    Array.isArray(value) ? value.map(String) : [];
  const shown = (value: JsonValue | undefined) => `[${texts(value).join(' ')}]`;
  const rows = listAt(status, 'resourceRules').flatMap((rule) =>
    texts(rule.apiGroups).flatMap((group) =>
      texts(rule.resources).map((resource) => [
        group === '' ? resource : `${resource}.${group}`,
        '[]',
        shown(rule.resourceNames),
        shown(rule.verbs),
      ]),
    ),
  );
  const urls = listAt(status, 'nonResourceRules').map((rule) => [
    '',
    shown(rule.nonResourceURLs),
    '[]',
    shown(rule.verbs),
  ]);
  const head = ['Resources', 'Non-Resource URLs', 'Resource Names', 'Verbs'];
  const lines = [...(session.flags.boolean('no-headers') ? [] : [head]), ...rows, ...urls];
  session.io.out(alignLines(lines));
  if (status.incomplete === true) {
    const why = textAt(status, 'evaluationError');
    session.io.err(`warning: the list may be incomplete${why === '' ? '' : `: ${why}`}\n`);
  }
  return 0;
}

const whoamiCommand: Command = {
  name: 'whoami',
  summary: 'Show who the server takes you for',
  flags: outputFlags,
  async run(session) {
    const resource = await session.resourceOfKind('SelfSubjectReview');
    const { object } = await session.client.send({
      method: 'POST',
      path: resourcePath(resource, {}),
      body: { apiVersion: apiVersionOf(resource), kind: 'SelfSubjectReview' },
    });
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
    ['Username', textAt(user, 'username') || textAt(user, 'name')],
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
  subcommands: [canICommand, whoamiCommand],
};
