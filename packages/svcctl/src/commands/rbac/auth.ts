import { type ApiResource, resourcePath } from '@wheelhouse/client';
import { rulesOf } from '@wheelhouse/kinds';
import {
  apiVersionOf,
  cut,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { CliError } from '../../io.ts';
import { objectAt, textAt } from '../../objects.ts';
import { outputFlags, printerOf } from '../../output/output.ts';
import { alignLines, noHeadersFlag } from '../../output/table.ts';
import { ruleHeads, ruleRows } from '../../rbac/rule-table.ts';
import type { Session } from '../../session.ts';
import { reconcileCommand } from './reconcile.ts';

/** Sends a review. Resolves with the server's response. */
async function sendReview(session: Session, kind: string, spec?: JsonObject): Promise<JsonObject> {
  const resource = await session.resourceOfKind(kind);
  const { object } = await session.client.send({
    method: 'POST',
    path: resourcePath(resource, {}),
    body: { apiVersion: apiVersionOf(resource), kind, ...(spec === undefined ? {} : { spec }) },
  });
  return object;
}

const canICommand: Command = {
  name: 'can-i',
  completes: 'verb-and-type',
  summary: 'Check whether an action is allowed',
  usage: 'VERB [TYPE | TYPE/NAME | NONRESOURCEURL]',
  flags: [
    { name: 'all-namespaces', short: 'A', type: 'boolean', help: 'In all namespaces' },
    {
      name: 'quiet',
      short: 'q',
      type: 'boolean',
      help: 'Print nothing; the exit code reports the result',
    },
    { name: 'list', type: 'boolean', help: 'Print all allowed actions' },
    { name: 'subresource', type: 'text', help: 'Subresource, such as log or scale' },
    noHeadersFlag,
  ],
  async run(session, args) {
    const { flags } = session;
    if (flags.boolean('list')) {
      checkListFlags(session, args);
      return listRules(session);
    }
    const [verb, what] = args;
    if (verb === undefined || what === undefined || args.length > 2) {
      throw new CliError(
        'you must specify two arguments: verb resource or verb resource/resourceName.\n' +
          "See 'svcctl auth can-i -h' for help and examples.",
      );
    }
    const spec = what.startsWith('/')
      ? { nonResourceAttributes: pathAttributes(session, { verb, path: what }) }
      : { resourceAttributes: await resourceAttributes(session, { verb, what }) };
    if (flags.boolean('no-headers')) {
      throw new CliError('--no-headers cannot be set without --list specified');
    }
    const status = objectAt(await sendReview(session, 'SelfSubjectAccessReview', spec), 'status');
    if (!flags.boolean('quiet')) session.io.out(answerText(status));
    return status.allowed === true ? 0 : 1;
  },
};

function checkListFlags({ flags }: Session, args: readonly string[]): void {
  if (args.length > 0) throw new CliError('list option must be specified with no arguments');
  const subresource = flags.text('subresource') ?? '';
  if (flags.boolean('quiet') || flags.boolean('all-namespaces') || subresource !== '') {
    throw new CliError(
      "list option can't be specified with neither quiet, all-namespaces nor subresource options",
    );
  }
}

function answerText(status: JsonObject): string {
  if (status.allowed === true) return 'yes\n';
  const why = ['reason', 'evaluationError'].map((name) => textAt(status, name));
  return `${['no', ...why.filter((reason) => reason !== '')].join(' - ')}\n`;
}

const pathVerbs = new Set(['get', 'put', 'post', 'head', 'options', 'delete', 'patch', '*']);
const resourceVerbs = new Set([
  ...['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', '*'],
  ...['use', 'bind', 'impersonate', 'approve', 'sign', 'escalate', 'attest'],
]);

/** Resources that the server authorizes and does not serve. */
const virtualResources = new Set(['users', 'groups']);

function warnAboutVerb(session: Session, verb: string, standardVerbs: ReadonlySet<string>): void {
  if (!standardVerbs.has(verb)) session.io.err(`Warning: verb '${verb}' is not a known verb\n\n`);
}

function pathAttributes(session: Session, request: { verb: string; path: string }): JsonObject {
  if ((session.flags.text('subresource') ?? '') !== '') {
    throw new CliError('--subresource can not be used with NonResourceURL');
  }
  warnAboutVerb(session, request.verb, pathVerbs);
  return { verb: request.verb, path: request.path };
}

async function resourceAttributes(
  session: Session,
  request: { verb: string; what: string },
): Promise<JsonObject> {
  const { verb, what } = request;
  const [type, name = ''] = cut(what, '/');
  const resource = await findResource(session, type);
  const everywhere = session.flags.boolean('all-namespaces');
  if (resource !== undefined && !resource.namespaced && !everywhere) {
    const group = resource.group === '' ? '' : ` in group '${resource.group}'`;
    session.io.err(`Warning: resource '${resource.resource}' is not namespace scoped${group}\n\n`);
  }
  if (!everywhere) warnAboutVerb(session, verb, resourceVerbs);
  const subresource = session.flags.text('subresource') ?? '';
  return {
    ...(everywhere ? {} : { namespace: session.namespace }),
    verb,
    group: resource?.group ?? '',
    resource: resource?.resource ?? type,
    ...(subresource === '' ? {} : { subresource }),
    ...(name === '' ? {} : { name }),
  };
}

async function findResource(session: Session, type: string): Promise<ApiResource | undefined> {
  if (type === '*') return undefined;
  const found = (await session.mapper()).byName(type.toLowerCase());
  if (found !== undefined) return found;
  if (virtualResources.has(type.toLowerCase())) return undefined;
  const [resource = '', ...group] = type.toLowerCase().split('.');
  const where = group.length === 0 ? '' : ` in group '${group.join('.')}'`;
  session.io.err(`Warning: the server doesn't have a resource type '${resource}'${where}\n\n`);
  return undefined;
}

async function listRules(session: Session): Promise<number> {
  const spec = { namespace: session.namespace };
  const status = objectAt(await sendReview(session, 'SelfSubjectRulesReview', spec), 'status');
  if (status.incomplete === true) {
    session.io.err(`Warning: the list may be incomplete: ${textAt(status, 'evaluationError')}\n`);
  }
  const lists = ['resourceRules', 'nonResourceRules'].flatMap((name) => {
    const rules = member(status, name);
    return Array.isArray(rules) ? rules.filter((rule) => isObject(rule)) : [];
  });
  const rows = ruleRows(rulesOf({ rules: lists }));
  session.io.out(
    alignLines(session.flags.boolean('no-headers') ? rows : [[...ruleHeads], ...rows]),
  );
  return 0;
}

const whoamiCommand: Command = {
  name: 'whoami',
  summary: 'Show the user that the server authenticates',
  flags: outputFlags,
  async run(session) {
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

/** Commands about the permissions of users. */
export const authCommand: Command = {
  name: 'auth',
  summary: 'Inspect authorization',
  subcommands: [canICommand, reconcileCommand, whoamiCommand],
};
