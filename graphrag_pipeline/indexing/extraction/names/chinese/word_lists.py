"""Word lists of the rules for Chinese names: surnames, forms of address, endings, and words that are no names.

Keep out: rules (`cjk.py`, `repeated_names.py`).
"""

from __future__ import annotations

from graphrag_pipeline.indexing.extraction.names.cues import words

SURNAMES = frozenset("""
王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任
沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤
温简阮蓝闵童盛刁樊虞房裘缪洪邢裴荣荀封芮靳焦巫甘符景詹卓蔺屠蒙池乔翟申冉庄晏柴瞿阎耿匡寇
云古柳楚洛慕欧司诸葛穆厉墨曲贝骆聂凌霍翁甄舒屈项祝苗狄米伍季麦殷施尤柯牛倪颜張劉陳楊黃趙吳孫馬鄭謝羅許韓馮鄧蕭葉蘇呂盧鍾譚陸範賈韋鄒龍賀顧錢嚴
""") - {"\n"}
VERB_SURNAMES = frozenset("应")
"""Surnames that nearly always are verbs: they count before a given name of two characters."""
ADDRESSES = words("先生 老先生 女士 小姐 太太 教授 老师 医生 大夫 博士 总统 主席 经理 师傅 大人 姑娘 老爷")
NO_NAMES = ADDRESSES | words(
    "大海 后山 高山 家乡 故乡 老家 城里 城市 海上 江湖 山林 天空 大地 世界 人间 下山 上山 进山 出山 进城 出城 回城"
)
INSIDE = frozenset("里上中下边内外前后")
PLACE_ENDINGS = frozenset("镇村城山县市区河湖岛州街路门谷峰宗国")
NO_BEGINNING = frozenset("在到了的从来去往向进出回和与是这那有座个条过离于把被对")
DOUBLE_SURNAMES = words("""
纳兰 欧阳 司马 上官 诸葛 慕容 东方 独孤 令狐 皇甫 尉迟 公孙 轩辕 夏侯 宇文 长孙 司徒 司空 端木 百里 南宫 西门 呼延 濮阳
公冶 太史 申屠 澹台 闻人 赫连 完颜 拓跋 耶律 北冥
""")
COMMON_WORDS = words("""
孙女 孙子 哥哥 姐姐 弟弟 妹妹 长大 山脉 大陆 帝国 老者 少爷 小子 丫头 家伙 师傅 师父 徒弟 长老 族长 宗主 弟子 众人 旁人
族人 家主 庄主 教主 帮主 城主 寨主 国师
顾问 朝廷 官府 衙门 政府
掌门 老人 少年 少女 青年 女子 男子 孩子 母亲 父亲 高山 高峰 小镇 小城 大山 黄昏 安静 明白 温柔 毕竟 王朝
""")
ORGANIZATION_ENDINGS = (
    "宗",
    "派",
    "帮",
    "盟",
    "教",
    "殿",
    "阁",
    "拍卖行",
    "学院",
    "公司",
    "佣兵团",
    "家族",
    "商会",
    "资本",
    "科技",
    "银行",
    "大学",
    "书院",
    "学堂",
)
HOUSE_ENDINGS = ("山庄", "客栈", "镖局", "武馆", "药铺", "酒楼", "王府")
JOINED_ENDINGS = {
    **dict.fromkeys(words("山脉 帝国 大陆 沙漠 森林 王国 平原 峡谷"), "ns"),
    **dict.fromkeys(words("拍卖行 学院 家族 佣兵团 商会 公司 集团"), "nt"),
    **dict.fromkeys(
        words("科技 资本 银行 证券 大学 医院 书院 学堂 研究院 研究所 出版社 印书馆 有限公司 事务所 船政局"), "nt"
    ),
    **dict.fromkeys(words("女王 公主 王子 皇帝 国王 夫人 将军 大师"), "nr"),
}
