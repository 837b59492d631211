/** Facts about the types of `admission`; made by scripts/facts/generate.mjs, do not edit. */
export const admissionFacts = `
@v1
#AdmissionReview k i=1.19
^- meta.v1.TypeMeta
request 1 *AdmissionRequest e o
response 2 *AdmissionResponse e o
#AdmissionRequest
uid 1 string t=types.UID
kind 2 meta.v1.GroupVersionKind
resource 3 meta.v1.GroupVersionResource
subResource 4 string e o
requestKind 13 *meta.v1.GroupVersionKind e o
requestResource 14 *meta.v1.GroupVersionResource e o
requestSubResource 15 string e o
name 5 string e o
namespace 6 string e o
operation 7 string t=v1.Operation
userInfo 8 authentication.v1.UserInfo
object 9 runtime.RawExtension e o
oldObject 10 runtime.RawExtension e o
dryRun 11 *bool e o
options 12 runtime.RawExtension e o
#AdmissionResponse
uid 1 string t=types.UID
allowed 2 bool
status 3 *meta.v1.Status e o
patch 4 bytes e o
patchType 5 *string e o t=v1.PatchType
auditAnnotations 6 {}string e o
warnings 7 []string e o
@v1beta1
#AdmissionReview k i=1.9 d=1.19 r=admission,v1,AdmissionReview
^- meta.v1.TypeMeta
request 1 *AdmissionRequest e o
response 2 *AdmissionResponse e o
#AdmissionRequest
uid 1 string t=types.UID
kind 2 meta.v1.GroupVersionKind
resource 3 meta.v1.GroupVersionResource
subResource 4 string e o
requestKind 13 *meta.v1.GroupVersionKind e o
requestResource 14 *meta.v1.GroupVersionResource e o
requestSubResource 15 string e o
name 5 string e o
namespace 6 string e o
operation 7 string t=v1beta1.Operation
userInfo 8 authentication.v1.UserInfo
object 9 runtime.RawExtension e o
oldObject 10 runtime.RawExtension e o
dryRun 11 *bool e o
options 12 runtime.RawExtension e o
#AdmissionResponse
uid 1 string t=types.UID
allowed 2 bool
status 3 *meta.v1.Status e o
patch 4 bytes e o
patchType 5 *string e o t=v1beta1.PatchType
auditAnnotations 6 {}string e o
warnings 7 []string e o
`;
