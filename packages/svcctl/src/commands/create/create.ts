import { isObject } from '@wheelhouse/machinery';
import { editHeading, editInEditor, editorFlags } from '../../apply/edit-session.ts';
import { recordFlag } from '../../apply/record.ts';
import { rawConflicts, sendRaw, withNamespace, withoutVersion } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { createFlags, createObject, requireName } from '../../create-object.ts';
import { ContextError } from '../../errors.ts';
import { CliError, throwFirst, usageError } from '../../io.ts';
import {
  eachManifest,
  hasManifests,
  manifestFlags,
  manifestSelectorFlag,
} from '../../manifests.ts';
import { nameOf, quotedLabel } from '../../objects.ts';
import { resourceOfObject } from '../../selection.ts';
import type { Session } from '../../session.ts';
import { createAccountCommands, createRbacCommands } from './create-access.ts';
import { createConfigMapCommand, createSecretCommand } from './create-data.ts';
import { createIngressCommand, createServiceCommand } from './create-network.ts';
import { createPolicyCommands, createWorkloadCommands } from './create-workloads.ts';

const namespaceCommand: Command = {
  name: 'namespace',
  aliases: ['ns'],
  summary: 'Create a namespace with the specified name',
  usage: 'NAME',
  flags: createFlags,
  run: (session, args) =>
    createObject(session, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: requireName(session, args) },
    }),
};

/**
 * Creates the objects of manifests, or one object of a subcommand from flags. Fails for objects
 * that exist.
 */
export const createCommand: Command = {
  name: 'create',
  summary: 'Create a resource from a file or from stdin',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    ...createFlags,
    manifestSelectorFlag,
    recordFlag,
    ...editorFlags,
    { name: 'edit', type: 'boolean', help: 'Edit the objects before they are created' },
    { name: 'raw', type: 'text', help: 'Raw path to POST the file to' },
  ],
  subcommands: [
    namespaceCommand,
    createConfigMapCommand,
    createSecretCommand,
    createServiceCommand,
    createIngressCommand,
    ...createWorkloadCommands,
    ...createPolicyCommands,
    ...createAccountCommands,
    ...createRbacCommands,
  ],
  async run(session, args) {
    if (args.length > 0) throw usageError('create', `Unexpected args: [${args.join(' ')}]`);
    const { flags } = session;
    const raw = flags.text('raw') ?? '';
    if (raw !== '') {
      throwFirst([
        !hasManifests(session) && 'must specify one of -f and -k',
        flags.boolean('edit') && '--raw and --edit are mutually exclusive',
        (flags.text('selector') ?? '') !== '' && '--raw and --selector (-l) are mutually exclusive',
        ...rawConflicts(session),
      ]);
      return sendRaw(session, 'POST', raw);
    }
    if (flags.boolean('edit')) return createEdited(session);
    return eachManifest(session, 'create', async ({ object, source }) => {
      try {
        const resource = await resourceOfObject(session, object);
        await createObject(
          session,
          withNamespace(session, { resource, object: withoutVersion(object) }),
        );
      } catch (error) {
        throw new ContextError(`error when creating ${JSON.stringify(source)}`, error);
      }
    });
  },
};

/** Opens each object in the editor and creates the result. Resolves with the exit code. */
async function createEdited(session: Session): Promise<number> {
  let editExit = 0;
  const exitCode = await eachManifest(session, 'create', async ({ object }) => {
    const resource = await resourceOfObject(session, object);
    const code = await editInEditor(session, {
      heading: editHeading,
      subject: quotedLabel(resource, nameOf(object)),
      shown: withNamespace(session, { resource, object: withoutVersion(object) }),
      apply: async (edited) => {
        if (!isObject(edited)) throw new CliError('the edited file is not an object');
        await createObject(session, edited);
        return { type: 'done' };
      },
    });
    editExit = Math.max(editExit, code);
  });
  return Math.max(exitCode, editExit);
}
