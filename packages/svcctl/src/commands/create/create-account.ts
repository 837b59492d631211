import { resourcePath } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { createFlags, createObject, metadataIn, onlyName, post } from '../../create-object.ts';
import { CliError } from '../../io.ts';
import { textAt } from '../../objects.ts';
import { outputFlags, printerOf } from '../../output/output.ts';
import { serverDialect } from '../../server-dialect.ts';
import type { Session } from '../../session.ts';

const serviceAccountCommand: Command = {
  name: 'serviceaccount',
  aliases: ['sa'],
  summary: 'Create a service account with the specified name',
  usage: 'NAME',
  flags: createFlags,
  run: (session, args) =>
    createObject(
      session,
      {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: metadataIn(session, onlyName(args)),
      },
      { doing: 'failed to create serviceaccount:' },
    ),
};

const tokenCommand: Command = {
  name: 'token',
  summary: 'Request a service account token',
  usage: 'SERVICE_ACCOUNT_NAME',
  flags: [
    ...outputFlags,
    { name: 'audience', type: 'list', help: 'Audience of the token; repeatable' },
    { name: 'duration', type: 'text', help: 'Lifetime of the token: 1h' },
    { name: 'bound-object-kind', type: 'text', help: 'Kind of the object it lives with' },
    { name: 'bound-object-name', type: 'text', help: 'Name of the object it lives with' },
    { name: 'bound-object-uid', type: 'text', help: 'UID of the object it lives with' },
  ],
  async run(session, args) {
    const name = onlyName(args);
    const spec = tokenSpec(session);
    const dialect = await serverDialect(session);
    const accounts = await session.resourceOfKind('ServiceAccount');
    const object = await post(session, {
      path: resourcePath(accounts, { namespace: session.namespace, name, subresource: 'token' }),
      body: {
        apiVersion: `${dialect.group('authentication')}/v1`,
        kind: 'TokenRequest',
        spec,
      },
      doing: 'failed to create token:',
    });
    const printer = printerOf(session);
    const token = textAt(object, 'status', 'token');
    if (token === '') throw new CliError('failed to create token: no token in server response');
    session.io.out(printer === undefined ? `${token}\n` : printer(object));
    return 0;
  },
};

function tokenSpec(session: Session): JsonObject {
  const audiences = session.flags.list('audience').flatMap((one) => one.split(','));
  if (audiences.includes('')) throw new CliError('--audience must not be an empty string');
  const durationMs = session.flags.durationMs('duration') ?? 0;
  if (durationMs < 0) throw new CliError('--duration must be greater than or equal to 0');
  if (durationMs % 1000 !== 0) {
    throw new CliError('--duration cannot be expressed in units less than seconds');
  }
  const boundObjectRef = boundObject(session);
  return {
    audiences,
    ...(durationMs === 0 ? {} : { expirationSeconds: durationMs / 1000 }),
    ...(boundObjectRef === undefined ? {} : { boundObjectRef }),
  };
}

const boundKinds = ['Node', 'Pod', 'Secret'];

function boundObject({ flags }: Session): JsonObject | undefined {
  const [kind = '', name = '', uid = ''] = ['kind', 'name', 'uid'].map((part) =>
    flags.text(`bound-object-${part}`),
  );
  if (kind === '') {
    const orphan = name !== '' ? 'name' : 'uid';
    if (name === '' && uid === '') return undefined;
    throw new CliError(
      `--bound-object-${orphan} can only be set if --bound-object-kind is provided`,
    );
  }
  if (!boundKinds.includes(kind)) {
    throw new CliError(`supported --bound-object-kind values are ${boundKinds.join(', ')}`);
  }
  if (name === '') {
    throw new CliError('--bound-object-name is required if --bound-object-kind is provided');
  }
  return { kind, apiVersion: 'v1', name, ...(uid === '' ? {} : { uid }) };
}

/** `create serviceaccount` and `create token`. */
export const createAccountCommands: readonly Command[] = [serviceAccountCommand, tokenCommand];
