import type { Command } from './command.ts';

/** All commands; loaded when asked for, so that importing this file costs nothing. */
export async function loadCommands(): Promise<readonly Command[]> {
  const [get, describe, create, remove, patch, apply, edit, label, misc, auth, config, wait] =
    await Promise.all([
      import('./commands/get.ts'),
      import('./commands/describe.ts'),
      import('./commands/create.ts'),
      import('./commands/delete.ts'),
      import('./commands/patch.ts'),
      import('./commands/apply.ts'),
      import('./commands/edit.ts'),
      import('./commands/label.ts'),
      import('./commands/server-info.ts'),
      import('./commands/auth.ts'),
      import('./commands/config.ts'),
      import('./commands/wait.ts'),
    ]);
  return [
    get.getCommand,
    describe.describeCommand,
    create.createCommand,
    remove.deleteCommand,
    patch.patchCommand,
    patch.replaceCommand,
    apply.applyCommand,
    apply.diffCommand,
    edit.editCommand,
    label.labelCommand,
    label.annotateCommand,
    wait.waitCommand,
    auth.authCommand,
    config.configCommand,
    misc.apiResourcesCommand,
    misc.apiVersionsCommand,
    misc.versionCommand,
  ];
}
