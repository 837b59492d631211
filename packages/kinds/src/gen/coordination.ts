/** Facts about the types of `coordination`; made by scripts/facts/generate.mjs, do not edit. */
export const coordinationFacts = `
@v1
#Lease k n i=1.14
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 LeaseSpec e o
#LeaseSpec
holderIdentity 1 *string e o
leaseDurationSeconds 2 *int32 e o
acquireTime 3 *meta.v1.MicroTime e o
renewTime 4 *meta.v1.MicroTime e o
leaseTransitions 5 *int32 e o
strategy 6 *string e o t=v1.CoordinatedLeaseStrategy
preferredHolder 7 *string e o
#LeaseList k i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Lease
@v1alpha2
#LeaseCandidate k n i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 LeaseCandidateSpec e o
#LeaseCandidateSpec
leaseName 1 string q
pingTime 2 *meta.v1.MicroTime e o
renewTime 3 *meta.v1.MicroTime e o
binaryVersion 4 string q
emulationVersion 5 string e o
strategy 6 string e q t=v1.CoordinatedLeaseStrategy
#LeaseCandidateList k i=1.32
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []LeaseCandidate
@v1beta1
#Lease k n i=1.12 d=1.19 r=coordination,v1,Lease
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 LeaseSpec e o
#LeaseSpec
holderIdentity 1 *string e o
leaseDurationSeconds 2 *int32 e o
acquireTime 3 *meta.v1.MicroTime e o
renewTime 4 *meta.v1.MicroTime e o
leaseTransitions 5 *int32 e o
strategy 6 *string e o t=v1.CoordinatedLeaseStrategy
preferredHolder 7 *string e o
#LeaseList k i=1.12 d=1.19 r=coordination,v1,LeaseList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Lease
`;
