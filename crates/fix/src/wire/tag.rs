// SPDX-License-Identifier: Apache-2.0
//! Tags that the session layer reads or writes.

/// BeginSeqNo.
pub const BEGIN_SEQ_NO: u32 = 7;
/// BeginString.
pub const BEGIN_STRING: u32 = 8;
/// BodyLength.
pub const BODY_LENGTH: u32 = 9;
/// CheckSum.
pub const CHECK_SUM: u32 = 10;
/// EndSeqNo.
pub const END_SEQ_NO: u32 = 16;
/// MsgSeqNum.
pub const MSG_SEQ_NUM: u32 = 34;
/// MsgType.
pub const MSG_TYPE: u32 = 35;
/// NewSeqNo.
pub const NEW_SEQ_NO: u32 = 36;
/// PossDupFlag.
pub const POSS_DUP_FLAG: u32 = 43;
/// RefSeqNum.
pub const REF_SEQ_NUM: u32 = 45;
/// SenderCompID.
pub const SENDER_COMP_ID: u32 = 49;
/// SenderSubID.
pub const SENDER_SUB_ID: u32 = 50;
/// SendingTime.
pub const SENDING_TIME: u32 = 52;
/// TargetCompID.
pub const TARGET_COMP_ID: u32 = 56;
/// TargetSubID.
pub const TARGET_SUB_ID: u32 = 57;
/// Text.
pub const TEXT: u32 = 58;
/// PossResend.
pub const POSS_RESEND: u32 = 97;
/// EncryptMethod.
pub const ENCRYPT_METHOD: u32 = 98;
/// HeartBtInt.
pub const HEART_BT_INT: u32 = 108;
/// TestReqID.
pub const TEST_REQ_ID: u32 = 112;
/// OnBehalfOfCompID.
pub const ON_BEHALF_OF_COMP_ID: u32 = 115;
/// OnBehalfOfSubID.
pub const ON_BEHALF_OF_SUB_ID: u32 = 116;
/// OrigSendingTime.
pub const ORIG_SENDING_TIME: u32 = 122;
/// GapFillFlag.
pub const GAP_FILL_FLAG: u32 = 123;
/// DeliverToCompID.
pub const DELIVER_TO_COMP_ID: u32 = 128;
/// DeliverToSubID.
pub const DELIVER_TO_SUB_ID: u32 = 129;
/// ResetSeqNumFlag.
pub const RESET_SEQ_NUM_FLAG: u32 = 141;
/// OnBehalfOfLocationID.
pub const ON_BEHALF_OF_LOCATION_ID: u32 = 144;
/// DeliverToLocationID.
pub const DELIVER_TO_LOCATION_ID: u32 = 145;
/// RefTagID.
pub const REF_TAG_ID: u32 = 371;
/// RefMsgType.
pub const REF_MSG_TYPE: u32 = 372;
/// SessionRejectReason.
pub const SESSION_REJECT_REASON: u32 = 373;
/// BusinessRejectRefID.
pub const BUSINESS_REJECT_REF_ID: u32 = 379;
/// BusinessRejectReason.
pub const BUSINESS_REJECT_REASON: u32 = 380;
/// MaxMessageSize.
pub const MAX_MESSAGE_SIZE: u32 = 383;
/// TestMessageIndicator.
pub const TEST_MESSAGE_INDICATOR: u32 = 464;
/// NextExpectedMsgSeqNum.
pub const NEXT_EXPECTED_MSG_SEQ_NUM: u32 = 789;
/// ApplVerID.
pub const APPL_VER_ID: u32 = 1128;
/// DefaultApplVerID.
pub const DEFAULT_APPL_VER_ID: u32 = 1137;
/// SessionStatus.
pub const SESSION_STATUS: u32 = 1409;
