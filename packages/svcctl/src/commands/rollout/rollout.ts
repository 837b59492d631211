import type { Command } from '../../command.ts';
import { historyCommand } from './history.ts';
import { pauseCommand, restartCommand, resumeCommand } from './restart.ts';
import { statusCommand } from './status.ts';
import { undoCommand } from './undo.ts';

export const rolloutCommand: Command = {
  name: 'rollout',
  summary: 'Manage the rollout of a resource',
  subcommands: [
    historyCommand,
    pauseCommand,
    restartCommand,
    resumeCommand,
    statusCommand,
    undoCommand,
  ],
};
