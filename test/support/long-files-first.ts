import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Slow test files, the slowest first. Those at the front run other programs, which use the cores
 * while the first compilation of the sources uses one. Files that mostly wait stand between files
 * that use more than one core.
 */
const longFiles = [
  'test/project/published-package.test.ts',
  'test/siege/simulation.test.ts',
  'test/project/npm-packages.test.ts',
  'test/console/console-gallery.test.ts',
  'test/console/console-features.test.ts',
  'test/console/console-screens.test.ts',
  'test/project/site.test.ts',
  'test/storage/etcd-cluster.test.ts',
  'test/storage/backup-crash.test.ts',
  'test/clients/executable.test.ts',
  'test/requests/work-budgets.test.ts',
  'test/clients/kubectl.test.ts',
  'test/storage/hostile-disks.test.ts',
  'test/serving/shutdown.test.ts',
  'test/storage/durability.test.ts',
  'test/svcctl/svcctl-edit.test.ts',
  'test/clients/exec-credentials.test.ts',
  'test/storage/kms-encryption.test.ts',
  'test/storage/etcd.test.ts',
  'test/clients/examples.test.ts',
  'test/operations/flags-traffic.test.ts',
  'test/siege/exhaustion.test.ts',
  'test/siege/rule-steps.test.ts',
  'test/authentication/oidc-fuzz.test.ts',
  'test/requests/fuzz.test.ts',
  'test/siege/growth.test.ts',
  'test/project/transcripts.test.ts',
  'test/svcctl/svcctl-kubectl.test.ts',
  'test/svcctl/svcctl-explain.test.ts',
  'test/svcctl/svcctl-apply.test.ts',
  'test/siege/histories/histories.test.ts',
  'test/custom-kinds/custom-kinds-fuzz.test.ts',
  'test/svcctl/svcctl-create.test.ts',
  'test/clients/plane-presets.test.ts',
];

/**
 * Runs slow files first, so that none of them runs alone at the end. vitest orders the others by
 * their size, or by their time in the last run.
 */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const index = longFiles.findIndex((name) => moduleId.endsWith(`/${name}`));
      return index < 0 ? longFiles.length : index;
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((left, right) => rankOf(left) - rankOf(right));
  }
}
