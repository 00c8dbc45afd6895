// The examples: files of the repository.
import hostMounts from '../../docs/examples/host-mounts.yaml';
import replicaLimit from '../../docs/examples/replica-limit.yaml';
import sidecar from '../../docs/examples/sidecar.yaml';
import web from '../../docs/examples/web.yaml';
import firstDraft from '../../tests/first_drafts/configmap_params.yaml';
import immutable from '../examples/immutable-claim.yaml';
import limits from '../examples/limits.yaml';
import pod from '../examples/pod.yaml';
import registries from '../examples/registries.yaml';

const settings = (team) => `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
  labels: {team: ${team}}
`;

/** Name and state of each example. */
export const examples = [
  { name: 'Limit of replicas', state: { policies: replicaLimit, object: web } },
  { name: 'Missing fields, with witnesses', state: { policies: limits, object: pod } },
  { name: 'Type error', state: { policies: hostMounts, object: pod } },
  { name: 'Params of a custom kind', state: { policies: registries, object: pod } },
  {
    name: 'Change of a label',
    state: { policies: immutable, object: settings('cart'), oldObject: settings('web'), user: 'ann', groups: 'developers' },
  },
  { name: 'Mutation', state: { policies: sidecar, object: web } },
  { name: 'First draft with mistakes', state: { policies: firstDraft, object: web } },
];
