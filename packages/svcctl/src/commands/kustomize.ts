import type { Command } from '../command.ts';
import { usageError } from '../io.ts';
import { buildKustomization } from '../kustomize.ts';

export const kustomizeCommand: Command = {
  name: 'kustomize',
  summary: 'Build a kustomization target from a directory (with the program kustomize)',
  usage: '[DIRECTORY]',
  async run(session, args) {
    if (args.length > 1) throw usageError('kustomize', 'specify one path to a kustomization');
    session.io.out(await buildKustomization(session, args[0] ?? '.'));
    return 0;
  },
};
