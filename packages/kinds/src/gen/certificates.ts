/** Facts about the types of `certificates`; made by scripts/facts/generate.mjs, do not edit. */
export const certificatesFacts = `
@v1
=ExtraValue []string
!KeyUsage ["any","cert sign","client auth","code signing","content commitment","crl sign","data encipherment","decipher only","digital signature","email protection","encipher only","ipsec end system","ipsec tunnel","ipsec user","key agreement","key encipherment","microsoft sgc","netscape sgc","ocsp signing","s/mime","server auth","signing","timestamping"]
#CertificateSigningRequest k c i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 CertificateSigningRequestSpec
status 3 CertificateSigningRequestStatus e o
#CertificateSigningRequestSpec
request 1 bytes l=atomic
signerName 7 string
expirationSeconds 8 *int32 e o
usages 5 []KeyUsage e l=atomic
username 2 string e o
uid 3 string e o
groups 4 []string e o l=atomic
extra 6 {}ExtraValue e o
#CertificateSigningRequestStatus
conditions 1 []CertificateSigningRequestCondition e o l=map k=type
certificate 2 bytes e o l=atomic
#CertificateSigningRequestCondition
type 1 string t=v1.RequestConditionType
status 6 string t=v1.ConditionStatus
reason 2 string e o
message 3 string e o
lastUpdateTime 4 meta.v1.Time e o
lastTransitionTime 5 meta.v1.Time e o
#CertificateSigningRequestList k i=1.19
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CertificateSigningRequest
@v1alpha1
#ClusterTrustBundle k c i=1.26 d=1.34
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ClusterTrustBundleSpec
#ClusterTrustBundleSpec
signerName 1 string e o
trustBundle 2 string
#ClusterTrustBundleList k i=1.26 d=1.34
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ClusterTrustBundle
@v1beta1
=ExtraValue []string
#CertificateSigningRequest k c i=1.12 d=1.19 r=certificates,v1,CertificateSigningRequest
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 CertificateSigningRequestSpec
status 3 CertificateSigningRequestStatus e o
#CertificateSigningRequestSpec
request 1 bytes l=atomic
signerName 7 *string e o
expirationSeconds 8 *int32 e o
usages 5 []string e l=atomic t=[]v1beta1.KeyUsage
username 2 string e o
uid 3 string e o
groups 4 []string e o l=atomic
extra 6 {}ExtraValue e o
#CertificateSigningRequestStatus
conditions 1 []CertificateSigningRequestCondition e o l=map k=type
certificate 2 bytes e o l=atomic
#CertificateSigningRequestCondition
type 1 string t=v1beta1.RequestConditionType
status 6 string o t=v1.ConditionStatus
reason 2 string e o
message 3 string e o
lastUpdateTime 4 meta.v1.Time e o
lastTransitionTime 5 meta.v1.Time e o
#CertificateSigningRequestList k i=1.12 d=1.19 r=certificates,v1,CertificateSigningRequestList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []CertificateSigningRequest
`;
