// Runs the suites of the sample operators that kubebuilder generates and keeps in its repository:
// their controllers and webhooks, on envtest, with each server as its kube-apiserver.
//
// KUBEBUILDER names kubebuilder's source folder in a GOPATH like the one of controller-runtime,
// which has the API types of cert-manager and of Gateway API as well.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runSuites } from './ginkgo-suites.mjs';

const source = process.env.KUBEBUILDER && join(process.env.KUBEBUILDER, 'testdata');
const projects = ['project-v4', 'project-v4-with-plugins'];

/** Folders of suites other than end-to-end tests, below the testdata folder. */
function suitesOf(project) {
  const below = readdirSync(join(source, project, 'internal'), { recursive: true });
  const files = below.filter((path) => path.endsWith('suite_test.go'));
  return files.map((path) => join(project, 'internal', path, '..')).sort();
}

runSuites({
  name: 'kubebuilder',
  source,
  gopath: source && join(source, '..', '..', '..', '..'),
  suites: source ? projects.flatMap(suitesOf) : [],
  variable: 'KUBEBUILDER',
  program: 'sample operators of kubebuilder',
  version: process.env.KUBEBUILDER_VERSION,
  script: 'kubebuilder.mjs',
  what: `The suites of controllers and webhooks of ${projects.join(', ')}, on envtest.`,
});
