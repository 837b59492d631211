import type { Command } from '../../command.ts';
import { envCommand } from './env.ts';
import { imageCommand } from './image.ts';
import { selectorCommand, serviceAccountCommand, subjectCommand } from './references.ts';
import { resourcesCommand } from './resources.ts';

export const setCommand: Command = {
  name: 'set',
  summary: 'Set specific features on objects',
  subcommands: [
    envCommand,
    imageCommand,
    resourcesCommand,
    selectorCommand,
    serviceAccountCommand,
    subjectCommand,
  ],
};
