import type { Command } from '../../command.ts';
import { CliError } from '../../io.ts';
import {
  bodyNames,
  changeCurrentContext,
  changeEntry,
  defaultFile,
  exactly,
  type ListName,
  readMerged,
} from '../../kubeconfig-edit.ts';
import { setClusterCommand, setContextCommand, setCredentialsCommand } from './config-entries.ts';
import { setCommand, unsetCommand } from './config-property.ts';
import {
  currentContextCommand,
  getClustersCommand,
  getContextsCommand,
  getUsersCommand,
  viewCommand,
} from './config-view.ts';

const useContextCommand: Command = {
  name: 'use-context',
  completes: 'contexts',
  aliases: ['use'],
  summary: 'Set the current-context in a kubeconfig file',
  usage: 'CONTEXT_NAME',
  async run(session, args) {
    const [name = ''] = exactly(1, args);
    if (name === '') throw new CliError('you must specify a current-context');
    if (!(await readMerged(session)).contexts.has(name)) {
      throw new CliError(`no context exists with the name: ${JSON.stringify(name)}`);
    }
    await changeCurrentContext(session, name);
    session.io.out(`Switched to context ${JSON.stringify(name)}.\n`);
    return 0;
  },
};

const renameContextCommand: Command = {
  name: 'rename-context',
  completes: 'contexts',
  summary: 'Rename a context from the kubeconfig file',
  usage: 'CONTEXT_NAME NEW_NAME',
  async run(session, args) {
    const [name = '', newName = ''] = exactly(2, args);
    if (newName === '') throw new CliError('You must specify a new non-empty context name');
    const { contexts, currentContext } = await readMerged(session);
    const quoted = JSON.stringify(name);
    const found = contexts.get(name);
    const file = defaultFile(session);
    if (found === undefined) {
      throw new CliError(`cannot rename the context ${quoted}, it's not in ${file}`);
    }
    if (contexts.has(newName)) {
      throw new CliError(
        `cannot rename the context ${quoted}, ` +
          `the context ${JSON.stringify(newName)} already exists in ${file}`,
      );
    }
    await changeEntry(session, { list: 'contexts', name: newName }, () => found.body);
    await changeEntry(session, { list: 'contexts', name }, () => undefined);
    if (currentContext === name) await changeCurrentContext(session, newName);
    session.io.out(`Context ${quoted} renamed to ${JSON.stringify(newName)}.\n`);
    return 0;
  },
};

function deleteCommandOf(name: string, list: ListName): Command {
  const what = bodyNames[list];
  return {
    name,
    summary: `Delete the specified ${what} from the kubeconfig`,
    usage: 'NAME',
    completes: list,
    async run(session, args) {
      const [wanted = ''] = exactly(1, args);
      const config = await readMerged(session);
      if (!config[list].has(wanted)) {
        throw new CliError(`cannot delete ${what} ${wanted}, not in ${defaultFile(session)}`);
      }
      const { file } = await changeEntry(session, { list, name: wanted }, () => undefined);
      if (list === 'contexts' && config.currentContext === wanted) {
        session.io.err(
          'warning: this removed your active context, use "svcctl config use-context" ' +
            'to select a different one\n',
        );
      }
      session.io.out(`deleted ${what} ${wanted} from ${file}\n`);
      return 0;
    },
  };
}

export const configCommand: Command = {
  name: 'config',
  summary: 'Modify kubeconfig files',
  subcommands: [
    viewCommand,
    getContextsCommand,
    getClustersCommand,
    getUsersCommand,
    currentContextCommand,
    useContextCommand,
    renameContextCommand,
    setClusterCommand,
    setCredentialsCommand,
    setContextCommand,
    setCommand,
    unsetCommand,
    deleteCommandOf('delete-context', 'contexts'),
    deleteCommandOf('delete-cluster', 'clusters'),
    deleteCommandOf('delete-user', 'users'),
  ],
};
